"""A pre-norm decoder block as in Llama, one operator a line."""

import functools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains.decoder_block import DECODER_BLOCK
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
    stored_dtype,
)
from explorer.engine.chain_functions.matmuls import in_fp64, weighted_inputs
from explorer.engine.chain_functions.rmsnorm import EPS, normalized
from explorer.engine.chain_functions.shared import whole_number
from explorer.engine.prepared import ChainFunction
from explorer.model.errors import UsageError

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Takes q, k, v and the causal mask."""
_ROTARY_BASE = 10_000.0
"""As in the paper (arXiv:2104.09864) and in Llama."""


def decoder_block(
    x: torch.Tensor,
    w_norm1: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    mask: torch.Tensor,
    w_o: torch.Tensor,
    w_norm2: torch.Tensor,
    w_gate: torch.Tensor,
    w_up: torch.Tensor,
    w_down: torch.Tensor,
    *,
    heads: int,
    attend: Attention,
) -> torch.Tensor:
    """The block; all of its tokens at once.

    Args:
        x: ``[batch, seq_len, hidden]``, as is the result.
        w_norm1: ``[hidden]``, of the norm before attention.
        w_q: ``[hidden, hidden]``, as are ``w_k``, ``w_v`` and ``w_o``.
        w_k: Of the keys.
        w_v: Of the values.
        cos: ``[seq_len, head_dim]``, as is ``sin``: by how much each token's features turn.
        sin: See ``cos``.
        mask: ``[seq_len, seq_len]``: -inf where a token would see a later one.
        w_o: Of the projection behind attention.
        w_norm2: ``[hidden]``, of the norm before the feed-forward part.
        w_gate: ``[hidden, features]``, as is ``w_up``.
        w_up: Makes what is let through.
        w_down: ``[features, hidden]``.
        heads: Attention heads.
        attend: How attention is computed.
    """
    h = with_attention(x, w_norm1, w_q, w_k, w_v, cos, sin, mask, w_o, heads=heads, attend=attend)
    return with_feed_forward(h, w_norm2, w_gate, w_up, w_down)


def with_attention(
    x: torch.Tensor,
    w_norm: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    mask: torch.Tensor,
    w_o: torch.Tensor,
    *,
    heads: int,
    attend: Attention,
) -> torch.Tensor:
    """The block's first half; for the arguments see :func:`decoder_block`."""
    squares = x.pow(2)
    mean = squares.mean(-1, keepdim=True)
    mean = mean + EPS
    r = torch.rsqrt(mean)
    y = x * r
    y = y * w_norm
    q = y @ w_q
    k = y @ w_k
    v = y @ w_v
    q = q.view(*x.shape[:-1], heads, -1).transpose(1, 2).contiguous()
    k = k.view(*x.shape[:-1], heads, -1).transpose(1, 2).contiguous()
    v = v.view(*x.shape[:-1], heads, -1).transpose(1, 2).contiguous()
    straight = q * cos
    first, second = q.chunk(2, dim=-1)
    turned = -second
    turned = torch.cat((turned, first), dim=-1)
    turned = turned * sin
    q = straight + turned
    straight = k * cos
    first, second = k.chunk(2, dim=-1)
    turned = -second
    turned = torch.cat((turned, first), dim=-1)
    turned = turned * sin
    k = straight + turned
    y = attend(q, k, v, mask)
    y = y.transpose(1, 2).flatten(2)
    y = y @ w_o
    return x + y


def written_out(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Attention as in the textbook.

    Args:
        q: ``[batch, heads, seq_len, head_dim]``, as are ``k``, ``v`` and the result.
        k: Keys.
        v: Values.
        mask: ``[seq_len, seq_len]``, added to the scores of every head.
    """
    s = q @ k.transpose(-2, -1)
    s = s * scale_of(q)
    s = s + mask
    p = torch.softmax(s, dim=-1)
    return p @ v


def by_operator(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, _mask: torch.Tensor
) -> torch.Tensor:
    """The same by torch's own operator, which knows the causal mask without reading it."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def with_feed_forward(
    h: torch.Tensor,
    w_norm: torch.Tensor,
    w_gate: torch.Tensor,
    w_up: torch.Tensor,
    w_down: torch.Tensor,
) -> torch.Tensor:
    """The block's second half; for the arguments see :func:`decoder_block`."""
    squares = h.pow(2)
    mean = squares.mean(-1, keepdim=True)
    mean = mean + EPS
    r = torch.rsqrt(mean)
    y = h * r
    y = y * w_norm
    gate = y @ w_gate
    up = y @ w_up
    y = F.silu(gate)
    y = y * up
    y = y @ w_down
    return h + y


def scale_of(q: torch.Tensor) -> float:
    """Factor of the scores."""
    return 1.0 / math.sqrt(q.shape[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """The parameters with their types."""

    batch: int
    seq_len: int
    hidden: int
    heads: int
    features: int
    dtype: torch.dtype

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads


def _settings(parameters: Parameters) -> _Settings:
    batch, seq_len, hidden, heads, features = (
        whole_number(parameters, name)
        for name in ("batch", "seq_len", "hidden", "heads", "features")
    )
    if hidden % (2 * heads):
        raise UsageError(
            f"hidden={hidden} cannot be shared out among heads={heads} with an even number each, "
            f"which rotary embedding needs; set hidden to a multiple of {2 * heads}."
        )
    return _Settings(
        batch=batch,
        seq_len=seq_len,
        hidden=hidden,
        heads=heads,
        features=features,
        dtype=stored_dtype(parameters["dtype"]),
    )


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The tokens, the weights, rotary's tables and the mask."""
    s = _settings(parameters)
    shapes = {
        "x": (s.batch, s.seq_len, s.hidden),
        "w_norm1": (s.hidden,),
        "w_q": (s.hidden, s.hidden),
        "w_k": (s.hidden, s.hidden),
        "w_v": (s.hidden, s.hidden),
        "cos": (s.seq_len, s.head_dim),
        "sin": (s.seq_len, s.head_dim),
        "mask": (s.seq_len, s.seq_len),
        "w_o": (s.hidden, s.hidden),
        "w_norm2": (s.hidden,),
        "w_gate": (s.hidden, s.features),
        "w_up": (s.hidden, s.features),
        "w_down": (s.features, s.hidden),
    }
    return {name: InputSpec(shape=shape, dtype=s.dtype) for name, shape in shapes.items()}


_MATRICES = ("w_q", "w_k", "w_v", "w_o", "w_gate", "w_up", "w_down")


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal tokens, weights that keep values about as large, the real tables and mask."""
    specs = input_specs(parameters)
    inputs = weighted_inputs(specs, {n: specs[n].shape[0] for n in _MATRICES}, device, seed)
    for name in ("w_norm1", "w_norm2"):
        inputs[name].mul_(0.1).add_(1.0)
    seq_len, head_dim = specs["cos"].shape
    pairs = torch.arange(0, head_dim, 2, device=device, dtype=torch.float64) / head_dim
    places = torch.arange(seq_len, device=device, dtype=torch.float64)
    angles = torch.outer(places, _ROTARY_BASE**-pairs).repeat(1, 2)
    inputs["cos"].copy_(angles.cos())
    inputs["sin"].copy_(angles.sin())
    inputs["mask"].fill_(-math.inf).triu_(1)
    return inputs


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain with the heads of these parameters."""
    return _with(parameters, written_out)


def make_sdpa(parameters: Parameters) -> ChainFunction:
    """The chain with attention by ``scaled_dot_product_attention``; takes the same inputs."""
    return _with(parameters, by_operator)


def _with(parameters: Parameters, attend: Attention) -> ChainFunction:
    return functools.partial(decoder_block, heads=_settings(parameters).heads, attend=attend)


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some tokens of one sequence at a time.

    Beside ``max_bytes`` it holds the keys and values of that sequence in fp64.
    """
    s = _settings(parameters)
    bytes_a_token = 8 * (6 * s.hidden + 4 * s.features + 3 * s.heads * s.seq_len)
    step = max(1, min(s.seq_len, max_bytes // bytes_a_token))
    sequences = list(range(s.batch))
    # Shuffled, so that a reference cut short still looks at every region.
    draw = random.Random(0)
    draw.shuffle(sequences)
    for batch in sequences:
        k, v = _keys_and_values(s, inputs, batch, step)
        starts = list(range(0, s.seq_len, step))
        draw.shuffle(starts)
        for start in starts:
            part = slice(start, min(start + step, s.seq_len))
            values = _tokens(s, inputs, (batch, part), k, v)
            yield ReferenceSlice(index=(batch, part), values=values)


def _keys_and_values(
    s: _Settings, inputs: Inputs, batch: int, step: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of all tokens of a sequence in fp64: ``[heads, seq_len, head_dim]`` each."""
    shape = (s.heads, s.seq_len, s.head_dim)
    k, v = (torch.empty(shape, dtype=torch.float64, device=inputs["x"].device) for _ in "kv")
    for start in range(0, s.seq_len, step):
        part = slice(start, start + step)
        y = normalized(inputs["x"][batch, part].double(), inputs["w_norm1"])
        k[:, part] = _turned(_heads_first(s, in_fp64(y, inputs["w_k"])), inputs, part)
        v[:, part] = _heads_first(s, in_fp64(y, inputs["w_v"]))
    return k, v


def _tokens(
    s: _Settings, inputs: Inputs, index: SliceIndex, k: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """Some tokens of a sequence behind the block, in fp64."""
    _, part = index
    x = inputs["x"][index].double()
    y = normalized(x, inputs["w_norm1"])
    q = _turned(_heads_first(s, in_fp64(y, inputs["w_q"])), inputs, part)
    scores = q @ k.mT * scale_of(q) + inputs["mask"][part].double()
    attended = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
    del scores
    h = x + in_fp64(attended, inputs["w_o"])
    y = normalized(h, inputs["w_norm2"])
    gate = in_fp64(y, inputs["w_gate"])
    inner = gate / (1 + (-gate).exp()) * in_fp64(y, inputs["w_up"])
    return h + in_fp64(inner, inputs["w_down"])


def _heads_first(s: _Settings, flat: torch.Tensor) -> torch.Tensor:
    return flat.view(-1, s.heads, s.head_dim).transpose(0, 1)


def _turned(x: torch.Tensor, inputs: Inputs, part: int | slice) -> torch.Tensor:
    """Rotary embedding by its definition: pairs of features as complex numbers, multiplied."""
    half = x.shape[-1] // 2
    angle = torch.complex(inputs["cos"][part, :half].double(), inputs["sin"][part, :half].double())
    product = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous()) * angle
    return torch.cat((product.real, product.imag), dim=-1)


def slice_as_written(
    parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Tokens of one sequence by the code as written, of which all tokens are computed."""
    batch, part = index
    assert isinstance(batch, int)
    x, *others = inputs.values()
    heads = _settings(parameters).heads
    block = decoder_block(x[batch : batch + 1], *others, heads=heads, attend=written_out)
    return block[0, part]


def differentiated(parameters: Parameters) -> tuple[str, ...]:
    """The tokens and the weights, in the order of the inputs; tables and mask are constants."""
    return tuple(n for n in input_specs(parameters) if n not in ("cos", "sin", "mask"))


CODE = ChainCode(
    chain_id=DECODER_BLOCK.id,
    size_parameter="seq_len",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=differentiated,
    sdpa=make_sdpa,
)
