"""A step of Adam or AdamW on a list of parameters, in place: a loop, or ops over the list."""

from collections.abc import Mapping
from typing import cast

from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.model.run import Scalar

N_MATRICES, N_VECTORS = 7, 2
"""Of a layer: four of attention, three of the feed-forward part; and the weights of two norms."""
N_TENSORS = N_MATRICES + N_VECTORS


def tensors_of(parameters: Mapping[str, Scalar]) -> int:
    """How many tensors the list has."""
    return N_TENSORS * cast("int", parameters["layers"])


def _ops(numbers: tuple[int, ...], mark: str, *, is_adamw: bool) -> tuple[OpName, ...]:
    """The step's ops on the tensors of these numbers, which each op goes over."""

    def op(name: str, detail: str, output: str, *, in_place: bool = False) -> OpName:
        first, *others = (f"{output}{number}" for number in numbers)
        return OpName(
            name=f"{name}{mark}", detail=detail, output=first, in_place=in_place,
            more_outputs=tuple(others),
        )  # fmt: skip

    shrink = op("shrink", "× (1 − lr · λ)", "p", in_place=True)
    return (
        *([shrink] if is_adamw else []),
        op("momentum", "β₁m + (1−β₁)g", "m", in_place=True),
        op("decay", "× β₂", "v", in_place=True),
        op("variance", "+ (1−β₂)g²", "v", in_place=True),
        op("root", "√", "root_v"),
        op("correct", "/ √(1−β₂ᵗ)", "corrected"),
        op("eps", "+ ε", "denominator"),
        op("update", "− lr · m / denominator", "p", in_place=True),
    )


def ops_for(parameters: Mapping[str, Scalar]) -> tuple[OpName, ...]:
    """One op for the whole list, or each op for each tensor, numbered as the tensors are."""
    numbers = tuple(range(tensors_of(parameters)))
    is_adamw = parameters["optimizer"] == "adamw"
    if parameters["implementation"] == "foreach":
        return _ops(numbers, "", is_adamw=is_adamw)
    return tuple(op for n in numbers for op in _ops((n,), f"_{n}", is_adamw=is_adamw))


ADAM_LIST = Chain(
    id="adam-list",
    title="A step of Adam on a list of parameters",
    family=Family.OPTIMIZERS,
    look_at=(
        "A loop launches seven kernels for each tensor, most of them too small to fill the chip; "
        "ops over the whole list launch few, and fused they also read every tensor only once."
    ),
    formula="for each: m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²;  p ← p − lr · m̂ / (√v̂ + ε)",
    parameters=(
        Parameter(
            name="layers", kind="int", cuda_default=2, cpu_default=1, minimum=1, maximum=64,
            sentence="Layers of a transformer, each of seven matrices and two vectors.",
        ),
        Parameter(
            name="hidden", kind="int", cuda_default=2048, cpu_default=256, minimum=4,
            maximum=65_536, sentence="Features a token: four matrices are hidden × hidden.",
        ),
        Parameter(
            name="dtype", kind="choice", cuda_default="fp32", cpu_default="fp32",
            choices=("fp32", "bf16"), sentence="Type of all tensors.",
        ),
        Parameter(
            name="optimizer", kind="choice", cuda_default="adamw", cpu_default="adamw",
            choices=("adam", "adamw"), sentence="AdamW takes a share off each parameter first.",
        ),
        Parameter(
            name="implementation", kind="choice", cuda_default="foreach", cpu_default="foreach",
            choices=("for-loop", "foreach"),
            sentence="Each op on each tensor by itself, or once on the whole list.",
        ),
    ),
    all_ops=_ops((0,), "", is_adamw=True),
    ops_for=ops_for,
    compared="implementation",
    compared_values=("for-loop", "foreach"),
)  # fmt: skip
