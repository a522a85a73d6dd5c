"""Textbook attention, written operator by operator."""

from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.parameters import matmul_dtype

BATCH = Parameter(
    name="batch", kind="int", cuda_default=2, cpu_default=1, minimum=1, maximum=4096,
    sentence="Sequences at once.",
)  # fmt: skip
HEADS = Parameter(
    name="heads", kind="int", cuda_default=16, cpu_default=4, minimum=1, maximum=1024,
    sentence="Attention heads a sequence.",
)  # fmt: skip
SEQ_LEN = Parameter(
    name="seq_len", kind="int", cuda_default=4096, cpu_default=1024, minimum=1,
    maximum=1_048_576, sentence="Tokens a sequence; the scores are seq_len × seq_len.",
)  # fmt: skip
DROPOUT = Parameter(
    name="dropout", kind="float", cuda_default=0.1, cpu_default=0.1, minimum=0, maximum=1,
    below_maximum=True, sentence="Share of the probabilities set to zero; 0 drops the op.",
)  # fmt: skip
MASK = Parameter(
    name="mask", kind="choice", cuda_default="additive", cpu_default="additive",
    choices=("additive", "causal", "none"),
    sentence="A full [seq_len, seq_len] tensor added to the scores, the causal one, or none.",
)  # fmt: skip

MASK_OP = OpName(name="mask", detail="+ mask", output="masked")
SOFTMAX_OP = OpName(name="softmax", detail="over keys", output="probs")
DROPOUT_OP = OpName(name="dropout", detail="p", output="dropped")

ATTENTION = Chain(
    id="attention",
    is_attention=True,
    title="Attention, as in the textbook",
    family=Family.ATTENTION,
    look_at=(
        "Between the two matmuls every op reads and writes a seq_len × seq_len tensor; "
        "fused, most of that never leaves the chip."
    ),
    formula="dropout(softmax(q kᵀ / √d + mask)) v",
    parameters=(
        BATCH,
        HEADS,
        SEQ_LEN,
        Parameter(
            name="head_dim", kind="int", cuda_default=64, cpu_default=64, minimum=1, maximum=1024,
            sentence="Features a head.",
        ),
        matmul_dtype("Type of q, k, v and the mask."),
        DROPOUT,
        MASK,
    ),
    all_ops=(
        OpName(name="qk", detail="q · kᵀ", output="scores"),
        OpName(name="scale", detail="× 1/√d", output="scaled"),
        MASK_OP,
        SOFTMAX_OP,
        DROPOUT_OP,
        OpName(name="pv", detail="p · v", output="out"),
    ),
    skipped_ops=(("mask", "none", "mask"), ("dropout", 0.0, "dropout")),
    trains=True,
)  # fmt: skip
