"""Softmax cross-entropy over a vocabulary, written operator by operator."""

import dataclasses

from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.parameters import ROWS, float_dtype

CROSS_ENTROPY = Chain(
    id="cross-entropy",
    title="Cross-entropy over a vocabulary",
    family=Family.LOSSES,
    look_at=(
        "Of gigabytes of logits one number is left, and every tensor as large as the logits is "
        "only on the way there; fused, they are read once or twice and nothing is written."
    ),
    formula="mean(log Σ exp(z − max z) − (z_target − max z))",
    parameters=(
        dataclasses.replace(ROWS, cuda_default=8192, cpu_default=256),
        Parameter(
            name="vocabulary", kind="int", cuda_default=32000, cpu_default=32000, minimum=1,
            maximum=1_048_576, sentence="Logits a row, one for each token there is.",
        ),
        float_dtype("Type of the logits; what a narrow one sums up is rounded to it."),
    ),
    all_ops=(
        OpName(name="max", detail="over a row", output="largest"),
        OpName(name="subtract", detail="− max", output="shifted"),
        OpName(name="exp", detail="eˣ", output="exponentials"),
        OpName(name="sum", detail="over a row", output="total"),
        OpName(name="log", detail="ln", output="log_total"),
        OpName(name="pick", detail="at the target", output="picked"),
        OpName(name="loss", detail="log Σ − picked", output="losses"),
        OpName(name="mean", detail="over rows", output="mean_loss"),
    ),
    trains=True,
)  # fmt: skip
