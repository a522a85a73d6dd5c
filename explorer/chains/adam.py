"""A step of Adam on one flat parameter, in place, operator by operator."""

from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.parameters import elements

ADAM = Chain(
    id="adam",
    title="A step of Adam, in place",
    family=Family.OPTIMIZERS,
    look_at=(
        "Seven ops pass over the same few tensors; fused, each of p, g, m and v is read once and "
        "p, m and v are written once, without a single tensor in between."
    ),
    formula="m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²;  p ← p − lr · m̂ / (√v̂ + ε)",
    parameters=(
        elements("Numbers in the parameter; g, m and v are as long."),
        Parameter(
            name="dtype", kind="choice", cuda_default="fp32", cpu_default="fp32",
            choices=("fp32", "bf16"), sentence="Type of p, g, m and v.",
        ),
    ),
    all_ops=(
        OpName(name="momentum", detail="β₁m + (1−β₁)g", output="m", in_place=True),
        OpName(name="decay", detail="× β₂", output="v", in_place=True),
        OpName(name="variance", detail="+ (1−β₂)g²", output="v", in_place=True),
        OpName(name="root", detail="√", output="root_v"),
        OpName(name="correct", detail="/ √(1−β₂ᵗ)", output="corrected"),
        OpName(name="eps", detail="+ ε", output="denominator"),
        OpName(name="update", detail="− lr · m / denominator", output="p", in_place=True),
    ),
)  # fmt: skip
