"""Bytes that plans foresee on captured chains, against counts made by hand, tensor by tensor."""

import functools

import pytest
import torch

from explorer.engine.prepare import capture_chain
from explorer.model.fusion import parse_plan
from explorer.model.opgraph import OpGraph
from explorer.model.planned import planned_bytes, planned_kernels
from explorer.model.run import Scalar

GPU = torch.device("cuda:0")
BATCH, HEADS, SEQ, DIM = 2, 3, 64, 16
# bf16: 2 bytes an element.
QKV = BATCH * HEADS * SEQ * DIM * 2
SCORES = BATCH * HEADS * SEQ * SEQ * 2
MASK = SEQ * SEQ * 2
ROWS, COLUMNS = 32, 256
WHOLE, COLUMN, ROW = ROWS * COLUMNS * 2, ROWS * 2, COLUMNS * 2
ROTATED, TABLE = BATCH * HEADS * SEQ * DIM * 2, SEQ * DIM * 2
LOGITS, TARGETS = ROWS * COLUMNS * 2, ROWS * 8
# fp32: 4 bytes an element.
FLAT = 1000 * 4
_MATRIX: dict[str, Scalar] = {"rows": ROWS, "columns": COLUMNS}
CENTERING = [
    (WHOLE, COLUMN),
    (WHOLE + COLUMN, WHOLE),
    (WHOLE, WHOLE),
    (WHOLE, COLUMN),
    (COLUMN, COLUMN),
    (COLUMN, COLUMN),
    (WHOLE + COLUMN, WHOLE),
    (WHOLE + ROW, WHOLE),
    (WHOLE + ROW, WHOLE),
]
"""LayerNorm op by op."""
SETTINGS: dict[str, dict[str, Scalar]] = {
    "attention": {"batch": BATCH, "heads": HEADS, "seq_len": SEQ, "head_dim": DIM},
    **dict.fromkeys(
        (
            "residual-rmsnorm",
            "layernorm",
            "residual-layernorm",
            "bias-gelu",
            "bias-dropout-residual",
            "swiglu",
            "geglu",
        ),
        _MATRIX,
    ),
    "rotary": {"batch": BATCH, "heads": HEADS, "seq_len": SEQ, "head_dim": DIM},
    "cross-entropy": {"rows": ROWS, "vocabulary": COLUMNS},
    "adam": {"elements": 1000, "dtype": "fp32"},
}
COUNTS: list[tuple[str, str, list[tuple[int, int]]]] = [
    (
        "attention",
        "each",
        [
            (2 * QKV, SCORES),
            (SCORES, SCORES),
            (SCORES + MASK, SCORES),
            (SCORES, SCORES),
            (SCORES, SCORES),
            (SCORES + QKV, QKV),
        ],
    ),
    ("attention", "all", [(3 * QKV + MASK, QKV)]),
    (
        "attention",
        "scale+mask+softmax|dropout",
        [(2 * QKV, SCORES), (SCORES + MASK, SCORES), (SCORES, SCORES), (SCORES + QKV, QKV)],
    ),
    (
        "residual-rmsnorm",
        "each",
        [
            (2 * WHOLE, WHOLE),
            (WHOLE, WHOLE),
            (WHOLE, COLUMN),
            (COLUMN, COLUMN),
            (COLUMN, COLUMN),
            (WHOLE + COLUMN, WHOLE),
            (WHOLE + ROW, WHOLE),
        ],
    ),
    # Both results are written, and the sum is not read back.
    ("residual-rmsnorm", "all", [(2 * WHOLE + ROW, 2 * WHOLE)]),
    # The sum is a result, so it is written even where only its own group reads it; behind the
    # boundary it is read again.
    (
        "residual-rmsnorm",
        "residual+square+mean|eps+rsqrt+normalize+weight",
        [(2 * WHOLE, WHOLE + COLUMN), (COLUMN + WHOLE + ROW, WHOLE)],
    ),
    ("layernorm", "each", CENTERING),
    ("layernorm", "all", [(WHOLE + 2 * ROW, WHOLE)]),
    # The centered rows come back for the normalizing, and x does not.
    (
        "layernorm",
        "mean+subtract+square+variance|eps+rsqrt+normalize+weight+bias",
        [(WHOLE, WHOLE + COLUMN), (WHOLE + COLUMN + 2 * ROW, WHOLE)],
    ),
    ("residual-layernorm", "each", [(2 * WHOLE, WHOLE), *CENTERING]),
    ("residual-layernorm", "all", [(2 * WHOLE + 2 * ROW, 2 * WHOLE)]),
    ("bias-gelu", "each", [(WHOLE + ROW, WHOLE), (WHOLE, WHOLE)]),
    ("bias-gelu", "all", [(WHOLE + ROW, WHOLE)]),
    # What was kept is needed by nobody in a forward pass.
    (
        "bias-dropout-residual",
        "each",
        [(WHOLE + ROW, WHOLE), (WHOLE, WHOLE), (2 * WHOLE, WHOLE)],
    ),
    ("bias-dropout-residual", "all", [(2 * WHOLE + ROW, WHOLE)]),
    ("geglu", "each", [(WHOLE, WHOLE), (2 * WHOLE, WHOLE)]),
    ("geglu", "all", [(2 * WHOLE, WHOLE)]),
    # One half of x is negated, and the other joined with that.
    (
        "rotary",
        "each",
        [
            (ROTATED + TABLE, ROTATED),
            (ROTATED // 2, ROTATED // 2),
            (ROTATED // 2 + ROTATED // 2, ROTATED),
            (ROTATED + TABLE, ROTATED),
            (2 * ROTATED, ROTATED),
        ],
    ),
    ("rotary", "all", [(ROTATED + 2 * TABLE, ROTATED)]),
    # Both halves are all of x, and a half of what is read whole is no more.
    (
        "rotary",
        "cosine|negate+rotate|sine+add",
        [(ROTATED + TABLE, ROTATED), (ROTATED, ROTATED), (2 * ROTATED + TABLE, ROTATED)],
    ),
    (
        "rotary",
        "cosine+negate|rotate+sine+add",
        [
            (ROTATED + TABLE, ROTATED + ROTATED // 2),
            (2 * (ROTATED // 2) + ROTATED + TABLE, ROTATED),
        ],
    ),
    # One logit a row is picked; the loss is one number of two bytes.
    (
        "cross-entropy",
        "each",
        [
            (LOGITS, COLUMN),
            (LOGITS + COLUMN, LOGITS),
            (LOGITS, LOGITS),
            (LOGITS, COLUMN),
            (COLUMN, COLUMN),
            (COLUMN + TARGETS, COLUMN),
            (2 * COLUMN, COLUMN),
            (COLUMN, 2),
        ],
    ),
    ("cross-entropy", "all", [(LOGITS + TARGETS, 2)]),
    # The shifted logits leave for exp, and what is picked of them is not read back.
    (
        "cross-entropy",
        "subtract+pick|exp+sum+log+loss+mean",
        [
            (LOGITS, COLUMN),
            (LOGITS + COLUMN + TARGETS, LOGITS + COLUMN),
            (LOGITS + COLUMN, 2),
        ],
    ),
    ("swiglu", "each", [(WHOLE, WHOLE), (2 * WHOLE, WHOLE)]),
    ("swiglu", "all", [(2 * WHOLE, WHOLE)]),
    ("adam", "each", [(n * FLAT, FLAT) for n in (2, 1, 2, 1, 1, 1, 3)]),
    ("adam", "all", [(4 * FLAT, 3 * FLAT)]),
    # Both means in one kernel, each read and written once; then the parameter, from both.
    (
        "adam",
        "momentum+decay+variance|root+correct+eps+update",
        [(3 * FLAT, 2 * FLAT), (3 * FLAT, FLAT)],
    ),
    # The decayed square lies in memory between its two updates.
    (
        "adam",
        "decay|variance+root+correct+eps",
        [(2 * FLAT, FLAT), (FLAT, FLAT), (2 * FLAT, 2 * FLAT), (3 * FLAT, FLAT)],
    ),
]


@functools.cache
def graph(chain: str) -> OpGraph:
    return capture_chain(chain, SETTINGS[chain], GPU).captured.graph


@pytest.mark.parametrize(("chain", "text", "counted"), COUNTS, ids=lambda value: str(value)[:40])
def test_the_bytes_of_a_plan_equal_the_hand_count(
    chain: str, text: str, counted: list[tuple[int, int]]
) -> None:
    ops = [op.name for op in graph(chain).ops]
    plan = parse_plan(text, ops, chain)
    kernels = planned_kernels(graph(chain), plan)
    assert [(kernel.bytes_read, kernel.bytes_written) for kernel in kernels] == counted
    assert planned_bytes(graph(chain), plan) == tuple(map(sum, zip(*counted, strict=True)))


def test_what_is_updated_in_place_is_never_foreseen_on_the_chip_alone() -> None:
    ops = [op.name for op in graph("adam").ops]
    [kernel] = planned_kernels(graph("adam"), parse_plan("all", ops, "adam"))
    assert kernel.stays_on_chip == ("root_v", "corrected", "denominator")
    assert {a.tensor: (a.bytes_read, a.bytes_written) for a in kernel.accesses} == {
        "m": (FLAT, FLAT),
        "g": (FLAT, 0),
        "v": (FLAT, FLAT),
        "p": (FLAT, FLAT),
    }
