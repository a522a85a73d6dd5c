"""Parameters that several chains share."""

from dataclasses import replace

from explorer.chains.descriptor import Parameter

ROWS = Parameter(
    name="rows", kind="int", cuda_default=16384, cpu_default=1024, minimum=1, maximum=16_777_216,
    sentence="Rows, such as the tokens of a batch.",
)  # fmt: skip
COLUMNS = Parameter(
    name="columns", kind="int", cuda_default=4096, cpu_default=4096, minimum=1, maximum=1_048_576,
    sentence="Features a row.",
)  # fmt: skip


def elements(sentence: str) -> Parameter:
    """The length of a flat tensor."""
    return Parameter(
        name="elements", kind="int", cuda_default=1 << 26, cpu_default=1 << 22, minimum=1,
        maximum=1 << 36, sentence=sentence,
    )  # fmt: skip


def float_dtype(sentence: str) -> Parameter:
    """The floating-point type of the tensors: narrow on a GPU, fp32 on a CPU."""
    return Parameter(
        name="dtype", kind="choice", cuda_default="bf16", cpu_default="fp32",
        choices=("fp32", "bf16", "fp16"), sentence=sentence,
    )  # fmt: skip


def matmul_dtype(sentence: str) -> Parameter:
    """The same for tensors that a matmul takes: fp32 may be multiplied as tf32."""
    return replace(float_dtype(sentence), choices=("fp32", "tf32", "bf16", "fp16"))


def matmul_rows(*, cuda: int, cpu: int) -> Parameter:
    """Rows of a matmul's first factor; on a CPU few, since each takes much arithmetic."""
    return replace(ROWS, cuda_default=cuda, cpu_default=cpu)


def matmul_columns(*, cuda: int, cpu: int, multiple_of: int = 1) -> Parameter:
    """Columns of a matmul's first factor."""
    return replace(
        COLUMNS,
        cuda_default=cuda,
        cpu_default=cpu,
        minimum=multiple_of,
        multiple_of=multiple_of,
    )


def features(sentence: str, *, cuda: int, cpu: int, multiple_of: int = 1) -> Parameter:
    """Columns of a matmul's second factor."""
    columns = matmul_columns(cuda=cuda, cpu=cpu, multiple_of=multiple_of)
    return replace(columns, name="features", sentence=sentence)
