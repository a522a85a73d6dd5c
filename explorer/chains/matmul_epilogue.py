"""A matmul with what usually follows it: a bias and an activation."""

from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.parameters import features, matmul_columns, matmul_dtype, matmul_rows

MATMUL_EPILOGUE = Chain(
    id="matmul-epilogue",
    title="Matmul + bias + activation",
    family=Family.MATMUL,
    look_at=(
        "The two ops behind the matmul only pass its result through memory again; a matmul kernel "
        "with an epilogue does them before it writes, others share one kernel behind it."
    ),
    formula="activation(x · W + b)",
    parameters=(
        matmul_rows(cuda=8192, cpu=256),
        matmul_columns(cuda=4096, cpu=512),
        features("Features of the result.", cuda=16384, cpu=2048),
        matmul_dtype("Type of x, W and b."),
        Parameter(
            name="activation", kind="choice", cuda_default="gelu", cpu_default="gelu",
            choices=("gelu", "gelu-tanh", "silu"),
            sentence="GELU by the error function or by tanh, or SiLU.",
        ),
    ),
    all_ops=(
        OpName(name="matmul", detail="x · W", output="product"),
        OpName(name="bias", detail="+ b", output="biased"),
        OpName(name="gelu", detail="by erf or by tanh", output="y"),
        OpName(name="silu", detail="x · sigmoid(x)", output="y"),
    ),
    skipped_ops=(
        ("activation", "gelu", "silu"),
        ("activation", "gelu-tanh", "silu"),
        ("activation", "silu", "gelu"),
    ),
    trains=True,
)  # fmt: skip
