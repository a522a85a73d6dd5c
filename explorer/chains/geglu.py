"""GEGLU's elementwise part, between the two matmuls before it and the one behind."""

import dataclasses

from explorer.chains.bias_gelu import GELU
from explorer.chains.descriptor import Chain, Family, OpName
from explorer.chains.parameters import COLUMNS, ROWS, float_dtype

GEGLU = Chain(
    id="geglu",
    title="GEGLU's gate",
    family=Family.ACTIVATIONS,
    look_at=(
        "GELU takes more arithmetic than SiLU and the same bytes: beside swiglu it shows that "
        "neither comes near the arithmetic that the device could do."
    ),
    formula="gelu(gate) · up",
    parameters=(
        dataclasses.replace(ROWS, cuda_default=8192),
        dataclasses.replace(COLUMNS, cuda_default=14336),
        float_dtype("Type of gate and up."),
        GELU,
    ),
    all_ops=(
        OpName(name="gelu", detail="x · Φ(x)", output="gated"),
        OpName(name="multiply", detail="× up", output="y"),
    ),
    trains=True,
)
