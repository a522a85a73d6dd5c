"""LayerNorm, written operator by operator."""

from explorer.chains.descriptor import Chain, Family, OpName
from explorer.chains.parameters import COLUMNS, ROWS, float_dtype

CENTERING_OPS = (
    OpName(name="mean", detail="over a row", output="row_mean"),
    OpName(name="subtract", detail="− mean", output="centered"),
    OpName(name="square", detail="squared", output="squares"),
    OpName(name="variance", detail="mean over a row", output="row_variance"),
    OpName(name="eps", detail="+ ε", output="above_zero"),
    OpName(name="rsqrt", detail="1/√", output="inverse_deviation"),
    OpName(name="normalize", detail="× 1/deviation", output="normalized"),
    OpName(name="weight", detail="× w", output="weighted"),
    OpName(name="bias", detail="+ b", output="y"),
)
"""From the tensor to normalize to ``y``."""

LAYERNORM = Chain(
    id="layernorm",
    title="LayerNorm, op by op",
    family=Family.NORMALISATION,
    look_at=(
        "A row is summed up twice, and the second sum waits for the first; a kernel that keeps its "
        "row on the chip still reads x only once, while one without room for it has to read x "
        "again for each sum."
    ),
    formula="(x − mean(x)) / √(mean((x − mean(x))²) + ε) · w + b",
    parameters=(ROWS, COLUMNS, float_dtype("Type of x, w and b.")),
    all_ops=CENTERING_OPS,
    trains=True,
)
