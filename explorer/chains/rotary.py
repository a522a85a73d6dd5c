"""Rotary embedding as in Llama, written operator by operator."""

import dataclasses

from explorer.chains.attention import BATCH, HEADS, SEQ_LEN
from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.parameters import float_dtype

ROTARY = Chain(
    id="rotary",
    title="Rotary embedding",
    family=Family.ATTENTION,
    look_at=(
        "Two multiplications and an addition an element, spread over five kernels; putting the "
        "halves the other way round is no arithmetic at all, and fused it is only another address."
    ),
    formula="x · cos + [−x₂, x₁] · sin,  x = [x₁, x₂]",
    parameters=(
        dataclasses.replace(BATCH, cuda_default=4),
        dataclasses.replace(HEADS, cuda_default=32, cpu_default=8),
        dataclasses.replace(SEQ_LEN, sentence="Tokens a sequence, each turned by its own angles."),
        Parameter(
            name="head_dim", kind="int", cuda_default=128, cpu_default=128, minimum=2,
            maximum=1024, multiple_of=2, sentence="Features a head: one half is turned with the "
            "other.",
        ),
        float_dtype("Type of x and of the tables."),
    ),
    all_ops=(
        OpName(name="cosine", detail="x · cos", output="by_cosine"),
        OpName(name="negate", detail="−x₂", output="negated"),
        OpName(name="rotate", detail="[−x₂, x₁]", output="rotated"),
        OpName(name="sine", detail="× sin", output="by_sine"),
        OpName(name="add", detail="of both", output="y"),
    ),
    trains=True,
)  # fmt: skip
