"""A gated feed-forward layer, with gate and up as two matmuls or as one."""

from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.parameters import features, matmul_columns, matmul_dtype, matmul_rows

FEED_FORWARD = Chain(
    id="feed-forward",
    title="Feed-forward with a gate",
    family=Family.MATMUL,
    look_at=(
        "Almost all of the time goes into the matmuls; as one matmul, gate and up read x once and "
        "launch once, and SwiGLU's two elementwise ops can share a kernel either way."
    ),
    formula="(silu(x · W_gate) · (x · W_up)) · W_down",
    parameters=(
        matmul_rows(cuda=8192, cpu=256),
        matmul_columns(cuda=4096, cpu=512),
        features("Features between the matmuls.", cuda=11008, cpu=1376),
        matmul_dtype("Type of x and the weights."),
        Parameter(
            name="projections", kind="choice", cuda_default="two", cpu_default="two",
            choices=("two", "one"),
            sentence="Gate and up as two matmuls, or as one whose result is split.",
        ),
    ),
    all_ops=(
        OpName(name="gate", detail="x · W_gate", output="gate"),
        OpName(name="up", detail="x · W_up", output="up"),
        OpName(name="gate_up", detail="x · [W_gate W_up]", output="gate_up"),
        OpName(name="silu", detail="x · sigmoid(x)", output="gated"),
        OpName(name="multiply", detail="× up", output="inner"),
        OpName(name="down", detail="· W_down", output="y"),
    ),
    skipped_ops=(
        ("projections", "two", "gate_up"),
        ("projections", "one", "gate"),
        ("projections", "one", "up"),
    ),
    trains=True,
    compared="projections",
    compared_values=("two", "one"),
)  # fmt: skip
