"""LayerNorm and GELU, each an operator of torch."""

from explorer.chains.descriptor import Chain, Family, OpName
from explorer.chains.parameters import COLUMNS, ROWS, float_dtype

LAYERNORM_GELU = Chain(
    id="layernorm-gelu",
    title="LayerNorm + GELU",
    family=Family.NORMALISATION,
    look_at=(
        "LayerNorm is one hand-written kernel in torch already; what fusion can still save is the "
        "round trip of its result to GELU."
    ),
    formula="gelu(layernorm(x) · w + b)",
    parameters=(ROWS, COLUMNS, float_dtype("Type of x, w and b.")),
    all_ops=(
        OpName(name="layernorm", detail="over a row", output="normalized"),
        OpName(name="gelu", detail="by tanh", output="y"),
    ),
    trains=True,
)
