"""Parameters that several chains share."""

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
