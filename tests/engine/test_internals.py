"""A torch that has moved what is relied on: a sentence, and the rest of the run."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from explorer.engine import internals
from explorer.engine.internals import PLACES, InternalMovedError, internal, patch_point, settings
from explorer.engine.measure import memory
from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.measure.memory import graph_pool_bytes, measure_peak
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.prepared import Prepared
from explorer.engine.session import Session
from explorer.engine.strategies import find_strategy
from explorer.model.messages import GraphRequest
from explorer.model.run import StrategyInfo

CPU = torch.device("cpu")
DOCUMENT = Path(__file__).parents[2] / "docs" / "torch-internals.md"


@pytest.fixture
def move(monkeypatch: pytest.MonkeyPatch) -> "Move":
    return Move(monkeypatch)


class Move:
    """Makes this program, but not torch itself, find a module of torch gone."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __call__(self, module: str) -> None:
        def import_module(name: str) -> object:
            if name == module:
                raise ModuleNotFoundError(f"No module named {name!r}")
            return importlib.import_module(name)

        shim = SimpleNamespace(import_module=import_module)
        self._patch.setattr(internals, "importlib", shim)


def compiled(small: Prepared) -> LaunchRecord:
    """Compile, watched, and record the launches."""
    with observing_compilation() as observation:
        built = find_strategy("compile").build(small)
    record = record_launches(
        built.call,
        prepared=small,
        strategy=StrategyInfo(name="compile"),
        counters=None,
        observation=observation,
    )
    built.close()
    return record


# torch's own modules use what torch deprecates.
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize("place", PLACES)
def test_this_torch_has_everything_where_it_is_looked_for(place: str) -> None:
    assert internal(place) is not None
    owner, name, found = patch_point(place)
    assert getattr(owner, name) is found or callable(found)


def test_every_place_is_in_the_document() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    missing = [place for place in PLACES if place.replace(":", ".") not in text]
    assert missing == []


def test_what_is_gone_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "torch._inductor.graph:GraphLowering.compile_to_module"
    monkeypatch.delattr(*patch_point(place)[:2])
    with pytest.raises(InternalMovedError) as caught:
        internal(place)
    assert str(caught.value) == (
        f"torch {torch.__version__} has no GraphLowering.compile_to_module, which Kernel Explorer "
        "uses to see code generated; use a torch from 2.11 to 2.13, or a newer Kernel Explorer."
    )


@pytest.mark.parametrize(
    "module",
    ["torch._inductor.graph", "torch._inductor.debug", "torch._inductor.codegen.cpp"],
)
def test_a_compiler_that_cannot_be_watched_still_compiles(
    small: Prepared, move: Move, module: str
) -> None:
    move(module)
    record = compiled(small)
    assert record.launches
    assert all(launch.bytes_read.modelled is not None for launch in record.launches)
    assert len(record.warnings) == 1
    assert record.warnings[0].startswith("The compilation was not observed")


def test_a_compiler_that_looks_different_still_compiles(
    small: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    from explorer.engine.measure import observe_compile

    def has_no_name(_node: object) -> None:
        raise AttributeError("no attribute 'all_input_nodes'")

    monkeypatch.setattr(observe_compile, "_graph_node", has_no_name)
    record = compiled(small)
    assert record.launches
    assert record.warnings[0].startswith("The compilation was not observed")


@pytest.mark.parametrize("module", ["torch._inductor.output_code", "torch._inductor.codecache"])
def test_compiled_code_that_cannot_be_looked_into_has_no_launches(
    small: Prepared, move: Move, module: str
) -> None:
    with observing_compilation() as observation:
        built = find_strategy("compile").build(small)
    move(module)
    record = record_launches(
        built.call,
        prepared=small,
        strategy=StrategyInfo(name="compile"),
        counters=None,
        observation=observation,
    )
    assert record.launches == ()
    assert record.tensors == ()
    assert len(record.warnings) == 1
    assert record.warnings[0].startswith(f"The launches are not known: torch {torch.__version__}")
    assert not record.counters.joined


def test_without_counts_there_are_no_graph_breaks_to_tell(small: Prepared, move: Move) -> None:
    move("torch._dynamo.utils")
    built = find_strategy("compile").build(small)
    built.close()
    assert built.graph_breaks == ()


def test_without_fake_tensors_nothing_is_captured_and_a_sentence_says_so(move: Move) -> None:
    move("torch._subclasses.fake_tensor")
    with pytest.raises(InternalMovedError, match="has no FakeTensorMode"):
        Session().handle(GraphRequest(chain="attention"), lambda _reply: None)


def test_a_setting_that_is_gone_needs_no_change() -> None:
    import torch._inductor.config as config

    with settings("torch._inductor.config", fx_graph_cache=False, no_such_setting=1):
        assert config.fx_graph_cache is False
    assert not hasattr(config, "no_such_setting")


def test_a_profiler_that_tells_no_memory_is_said(
    small: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent:
        """A profiler whose results are elsewhere."""

        profiler = SimpleNamespace()

        def __init__(self, **_options: object) -> None:
            """Take what a profiler takes."""

        def __enter__(self) -> "Silent":
            return self

        def __exit__(self, *_error: object) -> None:
            """End."""

    monkeypatch.setattr(memory, "profile", Silent)
    built = find_strategy("eager").build(small)
    with pytest.raises(InternalMovedError, match="has no kineto_results in its profiler"):
        measure_peak(built.call, device=CPU)


def test_a_snapshot_without_pools_is_no_pool_of_zero_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    segment = {"device": 0, "total_size": 1 << 20, "segment_pool_id": (0, 7)}
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: [segment])
    assert graph_pool_bytes(torch.device("cuda:0")) == 1 << 20
    del segment["segment_pool_id"]
    with pytest.raises(InternalMovedError, match="segment_pool_id"):
        graph_pool_bytes(torch.device("cuda:0"))
