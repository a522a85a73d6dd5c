"""RMSNorm and the matmul behind it, in bf16 or quantized to fp8."""

from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.parameters import features, matmul_columns, matmul_rows
from explorer.chains.rmsnorm import NORMALIZING_OPS

_OF_A_ROW = (
    OpName(name="abs", detail="| y |", output="magnitudes"),
    OpName(name="absmax", detail="over a row", output="largest"),
    OpName(name="widen", detail="to fp32", output="largest_fp32"),
    OpName(name="scale", detail="÷ 448, fp8's largest", output="row_scale"),
)
_QUANTIZING = (
    OpName(name="divide", detail="÷ scale, in fp32", output="in_range"),
    OpName(name="clamp", detail="to ± 448", output="clamped"),
    OpName(name="quantize", detail="to fp8", output="quantized"),
)

RMSNORM_FP8 = Chain(
    id="rmsnorm-fp8",
    title="RMSNorm + matmul, in fp8 or bf16",
    family=Family.MATMUL,
    look_at=(
        "In fp8 the matmul takes about half as long, but op by op finding the scale and quantizing "
        "can cost as much as that saves; fused into the norm's kernel they cost next to nothing."
    ),
    formula="y = x / √(mean(x²) + ε) · w;  s = max|y| / 448;  s · s_W · (fp8(y / s) · W)",
    parameters=(
        matmul_rows(cuda=8192, cpu=256),
        matmul_columns(cuda=4096, cpu=512, multiple_of=16),
        features("Features of the result.", cuda=4096, cpu=512, multiple_of=16),
        Parameter(
            name="dtype", kind="choice", cuda_default="bf16", cpu_default="bf16",
            choices=("bf16", "fp8"),
            sentence="Type that the matmul takes; all before it is in bf16, and so is the result.",
        ),
        Parameter(
            name="scale", kind="choice", cuda_default="row", cpu_default="row",
            choices=("row", "fixed"),
            sentence="In fp8: a scale a row from its largest value, or one that is given for all.",
        ),
    ),
    all_ops=(
        *NORMALIZING_OPS,
        *_OF_A_ROW,
        *_QUANTIZING,
        OpName(name="matmul", detail="· W", output="out"),
    ),
    skipped_ops=(
        *(("dtype", "bf16", op.name) for op in (*_OF_A_ROW, *_QUANTIZING)),
        *(("scale", "fixed", op.name) for op in _OF_A_ROW),
        ("scale", "row", "clamp"),
    ),
    compared="dtype",
    compared_values=("bf16", "fp8"),
)  # fmt: skip
