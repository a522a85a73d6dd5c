"""Compiled pieces come back by content, whichever plan they are of, and outlive other compilers."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import fx

from explorer.engine import pieces
from explorer.engine.internals import internal, settings
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.partition import Piece, PiecewiseCall
from explorer.engine.pieces import DEFAULT_OPTIONS, PLAN_OPTIONS, PieceCache, content_key
from explorer.engine.plan_pieces import partition_by
from explorer.engine.prepare import prepare
from explorer.engine.strategies import find_strategy
from explorer.model.fusion import FusionPlan, each_alone, parse_plan
from explorer.model.run import Scalar
from tests.engine.graphs import CPU, ops_of, ready

Compiled = list[fx.GraphModule]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """The pieces that are compiled, in order; those found in the cache are not among them."""
    seen: Compiled = []
    compile_piece = pieces._compile

    def noting(module: fx.GraphModule, options: Mapping[str, Any]) -> Any:
        seen.append(module)
        return compile_piece(module, options)

    monkeypatch.setattr(pieces, "_compile", noting)
    return seen


@pytest.fixture
def nothing_compiles(monkeypatch: pytest.MonkeyPatch, compiled: Compiled) -> Compiled:
    """The same, with nothing done where Inductor would compile."""

    def noting(module: fx.GraphModule, _options: Mapping[str, Any]) -> Any:
        compiled.append(module)
        return (lambda values: module(*values)), None

    monkeypatch.setattr(pieces, "_compile", noting)
    return compiled


def pieces_of(chain: str, **settings: Scalar) -> tuple[Piece, ...]:
    """The ops of a chain, each as a piece."""
    prepared = prepare(chain, settings, CPU)
    return partition_by(prepared, each_alone([op.name for op in prepared.graph.ops])).pieces


def keys(chain: str, **settings: Scalar) -> list[str]:
    return [content_key(piece.module, PLAN_OPTIONS) for piece in pieces_of(chain, **settings)]


def plan_of_adam(text: str) -> FusionPlan:
    return parse_plan(text, ops_of("adam"), "adam")


def test_pieces_alike_are_the_same_piece_wherever_they_stand() -> None:
    first = keys("elementwise", elements=64, k=8)
    # Two factors and two terms take turns.
    assert first[:4] == first[4:]
    assert len(set(first)) == 4
    assert keys("elementwise", elements=64, k=8) == first


def test_what_a_piece_depends_on_is_in_its_key() -> None:
    [piece, *_] = pieces_of("elementwise", elements=64, k=1)
    usual = content_key(piece.module, PLAN_OPTIONS)
    others = {
        *keys("elementwise", elements=32, k=1),
        *keys("elementwise", elements=64, k=1, dtype="bf16"),
        content_key(piece.module, DEFAULT_OPTIONS),
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        others.add(content_key(piece.module, PLAN_OPTIONS))
    finally:
        torch.set_num_threads(threads)
    from torch._inductor import config

    with config.patch(max_autotune=True):
        others.add(content_key(piece.module, PLAN_OPTIONS))
    assert len({usual, *others}) == 6
    assert content_key(piece.module, PLAN_OPTIONS) == usual


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (torch.backends.cuda.matmul, "fp32_precision", "tf32"),
        (torch.backends.mkldnn, "enabled", False),
        (torch.utils.deterministic, "fill_uninitialized_memory", False),
    ],
)
def test_what_is_set_in_torch_is_in_the_key(owner: object, name: str, value: object) -> None:
    [piece] = pieces_of("elementwise", elements=64, k=1)
    usual = content_key(piece.module, PLAN_OPTIONS)
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        assert content_key(piece.module, PLAN_OPTIONS) != usual
    finally:
        setattr(owner, name, before)
    assert content_key(piece.module, PLAN_OPTIONS) == usual


def test_the_default_type_is_in_the_key() -> None:
    [piece] = pieces_of("elementwise", elements=64, k=1)
    usual = content_key(piece.module, PLAN_OPTIONS)
    torch.set_default_dtype(torch.float64)
    try:
        assert content_key(piece.module, PLAN_OPTIONS) != usual
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_piece_that_was_not_asked_for_longest_goes_first(nothing_compiles: Compiled) -> None:
    cache = PieceCache(most=2)
    one, two, three, _ = pieces_of("elementwise", elements=64, k=4)
    for piece in (one, two, one, three):
        cache.compiled(piece)
    assert len(cache) == 2
    assert len(nothing_compiles) == 3
    assert cache.compiled(one).from_cache
    assert not cache.compiled(two).from_cache
    cache.clear()
    assert len(cache) == 0


def test_changing_one_link_compiles_the_groups_that_changed(nothing_compiles: Compiled) -> None:
    prepared, cache = ready("adam"), PieceCache()

    def built(text: str) -> list[bool]:
        parts = partition_by(prepared, plan_of_adam(text)).pieces
        return [cache.compiled(piece).from_cache for piece in parts]

    assert built("momentum|decay+variance|root+correct|eps|update") == [False] * 5
    nothing_compiles.clear()
    joined = built("momentum|decay+variance|root+correct+eps|update")
    assert joined == [True, True, False, True]
    assert len(nothing_compiles) == 1
    assert built("momentum|decay+variance|root+correct|eps|update") == [True] * 5
    cut = built("momentum|decay|variance|root+correct|eps|update")
    assert cut == [True, False, False, True, True, True]
    assert len(nothing_compiles) == 3


def test_a_piece_lets_go_of_its_inputs_and_knows_its_nodes() -> None:
    prepared = ready("elementwise")
    partition = partition_by(
        prepared, parse_plan("mul1+add2", ops_of("elementwise"), "elementwise")
    )
    had = PieceCache().compiled(partition.pieces[0])
    values = [prepared.inputs["x"]]
    [result] = had.call(values)
    assert values == []
    assert torch.equal(result, prepared.inputs["x"] * 1.25 + 0.5)
    assert had.notes is not None
    marks = {node.mark for node in had.notes.nodes.values()}
    assert marks == {None, 0, 1}


def test_a_piece_outlives_the_reset_of_other_strategies(compiled: Compiled) -> None:
    prepared = ready("swiglu")
    plan = parse_plan("all", ops_of("swiglu"), "swiglu")
    cache = PieceCache()
    had = cache.compiled(partition_by(prepared, plan).pieces[0])
    find_strategy("compile").build(prepared).close()  # forgets all that torch.compile compiled
    partition = partition_by(prepared, plan)
    again = cache.compiled(partition.pieces[0])
    assert again.from_cache
    assert again.notes is had.notes
    assert len(compiled) == 1
    modules = {module.key for module in internal("torch._inductor.codecache:PyCodeCache.modules")}
    assert again.notes is not None
    assert again.notes.key in modules
    inputs = tuple(prepared.inputs.values())
    [result] = PiecewiseCall(partition, [again.call])(*inputs)
    [expected] = prepared.results(prepared.function(*inputs))
    assert torch.allclose(result, expected, atol=1e-6)


def test_a_piece_is_the_same_whether_its_compilation_is_watched_or_not() -> None:
    """A run's pieces are compiled under the eyes of the measurement, accuracy's are not."""
    [first, *_] = pieces_of("swiglu", rows=8, columns=16)
    with observing_compilation():
        watched = content_key(first.module, PLAN_OPTIONS)
    assert content_key(first.module, PLAN_OPTIONS) == watched
    with settings("torch._inductor.config", max_autotune=True):
        assert content_key(first.module, PLAN_OPTIONS) != watched
