"""RMSNorm, written operator by operator."""

from explorer.chains.descriptor import Chain, Family, OpName
from explorer.chains.parameters import COLUMNS, ROWS, float_dtype

NORMALIZING_OPS = (
    OpName(name="square", detail="squared", output="squares"),
    OpName(name="mean", detail="over a row", output="mean_square"),
    OpName(name="eps", detail="+ ε", output="above_zero"),
    OpName(name="rsqrt", detail="1/√", output="inverse_rms"),
    OpName(name="normalize", detail="× 1/rms", output="normalized"),
    OpName(name="weight", detail="× w", output="y"),
)
"""From the tensor to normalize to ``y``."""

RMSNORM = Chain(
    id="rmsnorm",
    title="RMSNorm, op by op",
    family=Family.NORMALISATION,
    look_at=(
        "Only square, normalize and weight touch whole tensors, and the row's mean stands between "
        "them; one kernel that keeps its row on the chip reads x once and writes y once."
    ),
    formula="x / √(mean(x²) + ε) · w",
    parameters=(ROWS, COLUMNS, float_dtype("Type of x and w.")),
    all_ops=NORMALIZING_OPS,
    trains=True,
)
