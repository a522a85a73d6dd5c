"""The residual addition and the RMSNorm behind it, as between two blocks of a transformer."""

from explorer.chains.descriptor import Chain, Family, OpName
from explorer.chains.parameters import COLUMNS, ROWS, float_dtype
from explorer.chains.rmsnorm import NORMALIZING_OPS

RESIDUAL_RMSNORM = Chain(
    id="residual-rmsnorm",
    title="Residual + RMSNorm",
    family=Family.NORMALISATION,
    look_at=(
        "The sum h is a result of its own and is read twice more, by square and by normalize; "
        "a kernel that holds the row on the chip writes it once and never reads it back."
    ),
    formula="h = x + r;  y = h / √(mean(h²) + ε) · w",
    parameters=(ROWS, COLUMNS, float_dtype("Type of x, r and w.")),
    all_ops=(OpName(name="residual", detail="x + r", output="h"), *NORMALIZING_OPS),
    trains=True,
)
