"""The part of attention between its two matmuls, operator by operator."""

from explorer.chains.attention import (
    BATCH,
    DROPOUT,
    DROPOUT_OP,
    HEADS,
    MASK,
    MASK_OP,
    SEQ_LEN,
    SOFTMAX_OP,
)
from explorer.chains.descriptor import Chain, Family, OpName
from explorer.chains.parameters import float_dtype

HEAD_DIM = 64
"""Features a head that the scores are scaled for, as if they came from a matmul."""

ATTENTION_SCORES = Chain(
    id="attention-scores",
    title="Attention's scores, between the matmuls",
    family=Family.ATTENTION,
    look_at=(
        "No matmul stands between these ops, so that any neighbours can share a kernel; "
        "see whether the most fused plan is also the fastest."
    ),
    formula="dropout(softmax(scores / √64 + mask))",
    parameters=(
        BATCH,
        HEADS,
        SEQ_LEN,
        float_dtype("Type of the scores and the mask."),
        DROPOUT,
        MASK,
    ),
    all_ops=(
        OpName(name="scale", detail="× 0.125 = 1/√64", output="scaled"),
        MASK_OP,
        SOFTMAX_OP,
        DROPOUT_OP,
    ),
    skipped_ops=(("mask", "none", "mask"), ("dropout", 0.0, "dropout")),
    trains=True,
)
