"""SwiGLU's elementwise part, between the two matmuls before it and the one behind."""

import dataclasses

from explorer.chains.descriptor import Chain, Family, OpName
from explorer.chains.parameters import COLUMNS, ROWS, float_dtype

SWIGLU = Chain(
    id="swiglu",
    title="SwiGLU's gate",
    family=Family.ACTIVATIONS,
    look_at=(
        "Two elementwise ops: alone they move five tensors, fused they move three, "
        "and time follows the bytes."
    ),
    formula="silu(gate) · up",
    parameters=(
        dataclasses.replace(ROWS, cuda_default=8192),
        dataclasses.replace(COLUMNS, cuda_default=14336),
        float_dtype("Type of gate and up."),
    ),
    all_ops=(
        OpName(name="silu", detail="x · sigmoid(x)", output="gated"),
        OpName(name="multiply", detail="× up", output="y"),
    ),
    trains=True,
)
