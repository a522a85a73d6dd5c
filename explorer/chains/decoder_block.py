"""A whole pre-norm decoder block as in Llama, operator by operator."""

from collections.abc import Iterable
from dataclasses import replace

from explorer.chains.attention import BATCH, SEQ_LEN, SOFTMAX_OP
from explorer.chains.descriptor import Chain, Family, OpName, Parameter
from explorer.chains.feed_forward import FEED_FORWARD
from explorer.chains.parameters import features, matmul_dtype
from explorer.chains.rmsnorm import NORMALIZING_OPS
from explorer.chains.rotary import ROTARY


def _marked(ops: Iterable[OpName], mark: str) -> tuple[OpName, ...]:
    """The same ops under names of their own."""
    return tuple(replace(op, name=f"{op.name}{mark}", output=f"{op.output}{mark}") for op in ops)


def _named(ops: Iterable[OpName], names: Iterable[str]) -> tuple[OpName, ...]:
    """Those of some ops that have one of these names."""
    return tuple(op for op in ops if op.name in names)


_ATTENTION_OPS = (
    *_marked(NORMALIZING_OPS, "_attn"),
    OpName(name="project_q", detail="· W_q", output="flat_q"),
    OpName(name="project_k", detail="· W_k", output="flat_k"),
    OpName(name="project_v", detail="· W_v", output="flat_v"),
    OpName(name="heads_q", detail="a copy, heads first", output="q"),
    OpName(name="heads_k", detail="a copy, heads first", output="k"),
    OpName(name="heads_v", detail="a copy, heads first", output="v"),
    *_marked(ROTARY.all_ops, "_q"),
    *_marked(ROTARY.all_ops, "_k"),
    OpName(name="qk", detail="q · kᵀ", output="scores"),
    OpName(name="scale", detail="× 1/√d", output="scaled"),
    OpName(name="mask", detail="+ causal mask", output="masked"),
    SOFTMAX_OP,
    OpName(name="pv", detail="p · v", output="attended"),
    OpName(name="merge_heads", detail="a copy, tokens first", output="merged"),
    OpName(name="project", detail="· W_o", output="projected"),
    OpName(name="residual_attn", detail="x +", output="h"),
)
_FEED_FORWARD_OPS = (
    *_marked(NORMALIZING_OPS, "_ff"),
    *_named(FEED_FORWARD.all_ops, ("gate", "up", "silu", "multiply")),
    OpName(name="down", detail="· W_down", output="delta"),
    OpName(name="residual_ff", detail="h +", output="out"),
)

DECODER_BLOCK = Chain(
    id="decoder-block",
    title="A whole decoder block",
    family=Family.BLOCKS,
    look_at=(
        "Nine matmuls do nearly all of the arithmetic, the 33 small ops around them move most of "
        "the bytes; see how much of the block's time fusing them takes away."
    ),
    formula="h = x + W_o · attention(rmsnorm(x));  out = h + feed-forward(rmsnorm(h))",
    parameters=(
        replace(BATCH, cuda_default=4),
        replace(
            SEQ_LEN, cuda_default=2048, cpu_default=128, minimum=2,
            sentence="Tokens a sequence; each sees itself and those before it.",
        ),
        Parameter(
            name="hidden", kind="int", cuda_default=4096, cpu_default=256, minimum=16,
            maximum=65_536, sentence="Features a token, a multiple of twice the heads.",
        ),
        Parameter(
            name="heads", kind="int", cuda_default=32, cpu_default=4, minimum=2, maximum=1024,
            sentence="Attention heads, which share the features.",
        ),
        features("Features inside the feed-forward part.", cuda=11008, cpu=688),
        matmul_dtype("Type of x, the weights, the tables and the mask."),
    ),
    all_ops=(*_ATTENTION_OPS, *_FEED_FORWARD_OPS),
    trains=True,
)  # fmt: skip
