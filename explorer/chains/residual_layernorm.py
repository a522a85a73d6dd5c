"""The residual addition and the LayerNorm behind it, as between two blocks of a transformer."""

from explorer.chains.descriptor import Chain, Family, OpName
from explorer.chains.layernorm import CENTERING_OPS
from explorer.chains.parameters import COLUMNS, ROWS, float_dtype

RESIDUAL_LAYERNORM = Chain(
    id="residual-layernorm",
    title="Residual + LayerNorm",
    family=Family.NORMALISATION,
    look_at=(
        "Ten ops, and two tensors that somebody asked for, h and y; count the tensors in between "
        "that each plan still writes to memory."
    ),
    formula="h = x + r;  y = (h − mean(h)) / √(var(h) + ε) · w + b",
    parameters=(ROWS, COLUMNS, float_dtype("Type of x, r, w and b.")),
    all_ops=(OpName(name="residual", detail="x + r", output="h"), *CENTERING_OPS),
    trains=True,
)
