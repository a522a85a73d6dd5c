"""A bias and GELU, as behind the first matmul of a feed-forward layer."""

import dataclasses

from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.parameters import COLUMNS, ROWS, float_dtype

GELU = Parameter(
    name="gelu", kind="choice", cuda_default="tanh", cpu_default="tanh", choices=("tanh", "exact"),
    sentence="GELU by its approximation with tanh, or exactly, with erf.",
)  # fmt: skip

BIAS_GELU = Chain(
    id="bias-gelu",
    title="Bias + GELU",
    family=Family.ACTIVATIONS,
    look_at=(
        "Adding a bias is a full round trip of the tensor for one addition an element; "
        "fused into GELU it costs nothing but the reading of one row."
    ),
    formula="gelu(x + b)",
    parameters=(
        dataclasses.replace(ROWS, cuda_default=8192),
        dataclasses.replace(COLUMNS, cuda_default=16384),
        float_dtype("Type of x and b."),
        GELU,
    ),
    all_ops=(
        OpName(name="bias", detail="+ b", output="biased"),
        OpName(name="gelu", detail="x · Φ(x)", output="y"),
    ),
    trains=True,
)
