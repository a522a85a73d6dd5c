"""The projections in front of attention: three matmuls, or one."""

from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.parameters import matmul_columns, matmul_dtype, matmul_rows

QKV = Chain(
    id="qkv",
    title="Q, K and V, as three matmuls or one",
    family=Family.MATMUL,
    look_at=(
        "Three matmuls read the same x three times; one matmul with a wider weight reads it once, "
        "launches once and fills the chip better, and the split costs nothing."
    ),
    formula="q, k, v = x · W_q, x · W_k, x · W_v",
    parameters=(
        matmul_rows(cuda=8192, cpu=256),
        matmul_columns(cuda=4096, cpu=512),
        matmul_dtype("Type of x and the weights."),
        Parameter(
            name="projections", kind="choice", cuda_default="three", cpu_default="three",
            choices=("three", "one"),
            sentence="Three matmuls, or one whose result is split.",
        ),
    ),
    all_ops=(
        OpName(name="project_q", detail="x · W_q", output="q"),
        OpName(name="project_k", detail="x · W_k", output="k"),
        OpName(name="project_v", detail="x · W_v", output="v"),
        OpName(name="project", detail="x · [W_q W_k W_v]", output="qkv"),
    ),
    skipped_ops=(
        ("projections", "three", "project"),
        ("projections", "one", "project_q"),
        ("projections", "one", "project_k"),
        ("projections", "one", "project_v"),
    ),
    trains=True,
    compared="projections",
    compared_values=("three", "one"),
)  # fmt: skip
