"""A fusion plan as a backend of torch.compile: right results, whatever the program does."""

from __future__ import annotations

import doctest
import importlib.util
import subprocess
import sys
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

import explorer
from explorer.chains import CHAINS
from explorer.engine import backend as backend_module
from explorer.engine.pieces import CompiledPiece
from explorer.engine.prepare import prepare
from explorer.model.aten_names import aten_names
from explorer.model.errors import UsageError
from explorer.model.fusion import parse_plan
from explorer.model.plan_module import plan_module
from explorer.model.run import StrategyInfo
from tests.engine.graphs import QUICK_CHAINS, slow_but
from tests.fixtures_sweep import plan_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from explorer.engine.partition import Piece
    from explorer.engine.prepared import Prepared

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Dynamo keeps what it compiled by code object, and gives up after some of them."""
    torch.compiler.reset()
    torch.manual_seed(0)
    yield
    torch.compiler.reset()


def groups_of(backend: explorer.Backend) -> list[str]:
    """The plan of each graph, from the lines that head it."""
    heads = [line for line in backend.describe().splitlines() if " graph: " in line]
    return [line.partition(": ")[2] for line in heads]


def scores(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x * 0.125 + mask, -1)


SCORES = (torch.linspace(-3, 3, 128).reshape(2, 8, 8), torch.linspace(0, 1, 64).reshape(8, 8))


def test_the_docstrings_example_runs() -> None:
    found = doctest.DocTestFinder(recurse=False).find(explorer.backend, "backend")
    runner = doctest.DocTestRunner()
    for example in found:
        # Dynamo cleans up after itself in the example's globals, later.
        runner.run(example, clear_globs=False)
    assert runner.summarize(verbose=False).attempted == 5
    assert runner.summarize(verbose=False).failed == 0


def test_training_gives_eagers_gradients_and_each_graph_its_own_plan() -> None:
    def gated(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(x) * weight

    backend = explorer.backend("silu+mul", backward="each")
    made = [t.clone().requires_grad_() for t in SCORES]
    torch.autograd.backward(torch.compile(gated, backend=backend)(*made).sin().sum())
    expected = [t.clone().requires_grad_() for t in SCORES]
    torch.autograd.backward(gated(*expected).sin().sum())
    for mine, theirs in zip(made, expected, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)
    forward, backward = groups_of(backend)
    assert forward == "silu+mul"
    assert "+" not in backward
    assert backward.count("|") >= 2


def test_random_ops_repeat_after_the_seed() -> None:
    def drop(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x + 1, 0.5)

    compiled = explorer.backend("all").compile(drop)
    made = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        made.append(compiled(torch.ones(64)))
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


def test_dropouts_gradient_is_that_of_the_mask_it_drew() -> None:
    def drop(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x * 2, 0.25)

    x = torch.ones(64, 64, requires_grad=True)
    backend = explorer.backend("mul|native_dropout")
    y = torch.compile(drop, backend=backend)(x)
    torch.autograd.backward(y.sum())
    assert 0.65 < (y != 0).double().mean() < 0.85
    torch.testing.assert_close(x.grad, y)


class PlainPieces:
    """Pieces that run uncompiled and count, each when it is done, the results still held."""

    def __init__(self) -> None:
        self.made: list[weakref.ref[torch.UntypedStorage]] = []
        self.alive: list[int] = []

    def compiled(self, piece: Piece) -> CompiledPiece:
        def call(values: list[Any]) -> tuple[Any, ...]:
            results = tuple(piece.module(*values))
            values.clear()
            self.alive.append(sum(made() is not None for made in self.made))
            self.made.extend(weakref.ref(result.untyped_storage()) for result in results)
            return results

        return CompiledPiece(call=call, notes=None, compile_s=0.0, from_cache=False)


def test_what_was_saved_for_backward_is_let_go_when_last_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pieces = PlainPieces()
    monkeypatch.setattr(backend_module, "PIECES", pieces)
    x = torch.ones(8, requires_grad=True)
    backend = explorer.backend("each", backward="each")
    result = torch.compile(lambda x: x.exp().exp().exp().exp(), backend=backend)(x)
    assert pieces.alive == [0, 1, 2, 3]
    torch.autograd.backward(result.sum())
    # Of all that was made the first has to stay, since it is the result.
    assert pieces.alive[4:] == [4, 3, 2, 1]


def test_an_assertion_without_a_result_is_not_lost() -> None:
    def checked(x: torch.Tensor) -> torch.Tensor:
        torch._assert_async((x > 0).all(), "not positive")
        return x + 1

    backend = explorer.backend("all")
    compiled = backend.compile(checked)
    assert compiled(torch.ones(3)).tolist() == [2, 2, 2]
    assert groups_of(backend) == ["gt+all+assert_async+add"]
    with pytest.raises(RuntimeError, match="not positive"):
        compiled(-torch.ones(3))


def test_each_graph_of_a_broken_program_gets_the_plan() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = (x * 2 + 1).cos()
        torch._dynamo.graph_break()
        return (y * 3 + 2).sin()

    backend = explorer.backend("mul+add")
    made = torch.compile(broken, backend=backend)(SCORES[0])
    torch.testing.assert_close(made, broken(SCORES[0]))
    assert groups_of(backend) == ["mul+add|cos", "mul+add|sin"]


@pytest.mark.parametrize("plan", ["all", "each"])
def test_an_optimizers_step_works_in_place(plan: str) -> None:
    def steps(wrap: Callable[[Callable[[], Any]], Callable[[], Any]]) -> torch.Tensor:
        parameter = torch.linspace(-1, 1, 32, requires_grad=True)
        optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.9)
        parameter.grad = torch.linspace(0, 1, 32)
        step = wrap(optimizer.step)
        for _ in range(2):
            step()
        return parameter.detach()

    backend = explorer.backend(plan)
    torch.testing.assert_close(steps(backend.compile), steps(lambda step: step))
    assert groups_of(backend)


def test_a_plan_that_does_not_fit_is_refused_in_its_own_words() -> None:
    for plan, words in (
        ("mul+relu", "The forward graph has no op 'relu'; its ops are mul, add, softmax."),
        ("mul+softmax", "mul and softmax cannot share a kernel without add in between"),
    ):
        with pytest.raises(UsageError) as caught:
            torch.compile(scores, backend=explorer.backend(plan))(*SCORES)
        assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("mul+", "lacks the name of an op after 'mul'"),
        ("mul|_softmax+mul", "names 'mul' twice"),
        ("softmax|_softmax", "names 'softmax' twice"),
        ("", "The plan is empty"),
        ("inductor", "A backend has no plan 'inductor'"),
        ("*", "A backend has no plan '*'"),
    ],
)
def test_what_no_graph_could_have_is_refused_at_once(plan: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        explorer.backend(plan)
    assert words in str(caught.value)
    with pytest.raises(UsageError):
        explorer.backend("all", backward=plan)


def test_sizes_that_are_not_known_are_refused_and_compile_has_none() -> None:
    loose = torch.compile(scores, backend=explorer.backend("each"), dynamic=True)
    with pytest.raises(UsageError, match=r"call torch\.compile with dynamic=False"):
        loose(*SCORES)
    backend = explorer.backend("all")
    for batch in (2, 1):
        given = (SCORES[0][:batch], SCORES[1])
        torch.testing.assert_close(backend.compile(scores)(*given), scores(*given))
    assert groups_of(backend) == ["mul+add+softmax"] * 2


def test_a_size_that_depends_on_values_is_refused() -> None:
    compiled = explorer.backend("each").compile(lambda x: x[x > 0] * 2)
    with (
        torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True),
        pytest.raises(UsageError, match="that of what index gives depends on values"),
    ):
        compiled(torch.ones(3))


def test_a_learners_names_can_be_given() -> None:
    names = {"scale": "mul", "mask": "add"}
    backend = explorer.backend("scale+mask|softmax", names=names)
    torch.testing.assert_close(backend.compile(scores)(*SCORES), scores(*SCORES))
    assert groups_of(backend) == ["mul+add|softmax"]


def test_the_names_that_a_plan_can_use_are_listed() -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).exp() * 3

    listed = explorer.plan_ops(twice, SCORES[0].clone().requires_grad_())
    forward, backward = listed.split("\n\n")
    assert forward.splitlines() == [
        "forward graph: mul|exp|mul2",
        "  mul   aten.mul.Tensor   return (x * 2).exp() * 3",
        "  exp   aten.exp.default  return (x * 2).exp() * 3",
        "  mul2  aten.mul.Tensor   return (x * 2).exp() * 3",
    ]
    assert backward.startswith("backward graph: mul|mul2|mul3")


def small(chain: str) -> Prepared:
    sizes = {p.name: 4 for p in CHAINS[chain].parameters if p.kind == "int" and p.minimum <= 4}
    return prepare(chain, sizes, CPU)


@pytest.mark.parametrize("chain", slow_but(QUICK_CHAINS))
def test_a_chains_ops_have_the_same_names_in_an_exported_plan_and_in_the_backend(
    chain: str,
) -> None:
    prepared = small(chain)
    with torch.no_grad():
        listed = explorer.plan_ops(prepared.function, *prepared.inputs.values())
    first = listed.splitlines()[0]
    names = aten_names([op.aten for op in prepared.graph.ops])
    assert first == f"forward graph: {'|'.join(names)}"


@pytest.mark.parametrize(
    ("chain", "text"), [("attention-scores", "scale+mask|softmax"), ("adam", "decay+variance")]
)
def test_an_exported_module_gives_the_chain_the_same_groups(
    tmp_path: Path, chain: str, text: str
) -> None:
    prepared = small(chain)
    names = [op.name for op in prepared.graph.ops]
    plan = parse_plan(text, names, chain)
    run = replace(
        plan_run("scale+mask+softmax+dropout"),
        graph=prepared.graph,
        strategy=StrategyInfo(name="plan", option=text, plan=plan.text),
    )
    path = tmp_path / "taken_home.py"
    path.write_text(plan_module(run), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("taken_home", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with torch.no_grad():
        module.compile(prepared.function)(*prepared.inputs.values())
    renamed = dict(zip(aten_names([op.aten for op in prepared.graph.ops]), names, strict=True))
    (made,) = groups_of(module.backend)
    in_own_names = "|".join(
        "+".join(renamed[name] for name in group.split("+")) for group in made.split("|")
    )
    assert in_own_names == plan.text


def test_the_package_loads_no_torch() -> None:
    code = "import sys, explorer; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
