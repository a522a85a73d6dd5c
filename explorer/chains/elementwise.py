"""As many elementwise ops in a row as one likes."""

from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.parameters import elements, float_dtype

FACTORS = (1.25, 0.8)
"""Taken by the multiplications in turn; together they are 1, so that values stay as they are."""
TERMS = (0.5, -0.4)
"""Added behind each multiplication: a pair of both leaves the value where it was."""
MOST_OPS = 32


def _op(number: int) -> OpName:
    """The op in that place, from 1 on: multiplications and additions take turns."""
    is_product, turn = number % 2 == 1, (number - 1) // 2
    constant = (FACTORS if is_product else TERMS)[turn % 2]
    sign = "×" if is_product else "+" if constant > 0 else "−"
    return OpName(
        name=f"{'mul' if is_product else 'add'}{number}",
        detail=f"{sign} {abs(constant):g}",
        output=f"x{number}",
    )


ELEMENTWISE = Chain(
    id="elementwise",
    title="Elementwise ops in a row",
    family=Family.ACTIVATIONS,
    look_at=(
        "Each op alone reads and writes the whole tensor, so that time grows with their number; "
        "fused, any number costs one read and one write."
    ),
    formula="((x · 1.25 + 0.5) · 0.8 − 0.4) …",
    parameters=(
        elements("Numbers in x."),
        float_dtype("Type of x."),
        Parameter(
            name="k", kind="int", cuda_default=8, cpu_default=8, minimum=1, maximum=MOST_OPS,
            sentence="How many ops.",
        ),
    ),
    all_ops=tuple(_op(number) for number in range(1, MOST_OPS + 1)),
    length_parameter="k",
    trains=True,
)  # fmt: skip
