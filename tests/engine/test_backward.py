"""Forward and backward as one call: its graph, its launches, its gradients, what it holds."""

import dataclasses

import pytest
import torch

from explorer.chains import CHAINS
from explorer.engine.comparison import Comparison
from explorer.engine.fitting import estimate
from explorer.engine.measure import fp64
from explorer.engine.measure.fp64 import fp64_results, longest_sum, slices_of
from explorer.engine.measure.groups import observation_of
from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.measure.memory import measure_peak
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.prepare import ChosenChain, capture_chain, make_ready, prepare
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import Built, Strategy, find_strategy
from explorer.model.errors import UsageError
from explorer.model.fusion import all_in_one, parse_plan
from explorer.model.legality import check
from explorer.model.planned import planned_bytes
from explorer.model.run import Direction, Launch
from explorer.model.tensor import TensorRole
from tests.engine.graphs import CPU, SMALL

BOTH = Direction.FORWARD_BACKWARD
ROWS, COLUMNS = 16, 64
# fp32: 4 bytes an element.
WHOLE, COLUMN, ROW = ROWS * COLUMNS * 4, ROWS * 4, COLUMNS * 4
TRAINED = tuple(chain.id for chain in CHAINS.values() if chain.trains)


def chosen(chain: str, **settings: object) -> ChosenChain:
    small = SMALL.get(chain, {"rows": ROWS, "columns": COLUMNS})
    return capture_chain(chain, {"dtype": "fp32", **small, **settings}, CPU, BOTH)


def ready(chain: str, **settings: object) -> Prepared:
    return make_ready(chosen(chain, **settings), seed=0)


def recorded(prepared: Prepared, spec: str) -> LaunchRecord:
    strategy = find_strategy(spec)
    with observing_compilation() as observation:
        built = strategy.build(prepared)
    if built.groups:
        observation = observation_of(built.groups)
    return record_launches(
        built.call,
        prepared=prepared,
        strategy=strategy.info(built.backend),
        counters=None,
        observation=observation if strategy.compiles else None,
        groups=built.groups,
    )


def bytes_of(launches: tuple[Launch, ...]) -> list[tuple[int | None, int | None]]:
    return [(each.bytes_read.modelled, each.bytes_written.modelled) for each in launches]


def test_the_graph_has_the_backward_ops_behind_the_forward_ones() -> None:
    graph = chosen("swiglu").captured.graph
    assert [(op.name, op.is_backward) for op in graph.ops] == [
        ("silu", False),
        ("multiply", False),
        ("d_multiply", True),
        ("d_multiply2", True),
        ("d_silu", True),
    ]
    assert [(op.reads, op.writes) for op in graph.ops[2:]] == [
        (("grad_output", "gated"), ("grad_up",)),
        (("grad_output", "up"), ("d_multiply2",)),
        (("d_multiply2", "gate"), ("grad_gate",)),
    ]
    outputs = [t.id for t in graph.tensors if t.role is TensorRole.OUTPUT]
    assert outputs == ["y", "grad_up", "grad_gate"]
    assert graph.tensor("grad_output").role is TensorRole.INPUT


def test_what_adds_up_gradients_is_called_by_whose_they_are() -> None:
    captured = chosen("rmsnorm").captured
    adding = [node for node in captured.nodes if node.adds_gradients]
    assert [(node.op, node.gradient_of) for node in adding] == [("d_x", "x")]
    assert captured.graph.ops[-1].writes == ("grad_x",)


def test_a_gradient_handed_in_is_no_input_over_again() -> None:
    prepared = ready("rmsnorm")
    x, tangent = prepared.inputs["x"], prepared.inputs["grad_output"]
    assert x.shape == tangent.shape
    correlation = torch.corrcoef(torch.stack((x.flatten(), tangent.flatten())))[0, 1]
    assert abs(float(correlation)) < 0.2


def test_a_chain_that_is_not_trained_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^adam has no backward pass"):
        chosen("adam")


@pytest.mark.parametrize("chain", TRAINED)
def test_each_eager_launch_is_of_its_op_in_either_direction(chain: str) -> None:
    prepared = ready(chain)
    record = recorded(prepared, "eager")
    ops = [op.name for op in prepared.graph.ops]
    assert list(dict.fromkeys(op for launch in record.launches for op in launch.ops)) == ops
    assert all(len(launch.ops) == 1 for launch in record.launches)
    named = {tensor.id for tensor in record.tensors}
    assert named >= {t.id for t in prepared.graph.tensors if t.role is TensorRole.OUTPUT}


def test_eager_bytes_of_a_gate_by_hand() -> None:
    launches = recorded(ready("swiglu"), "eager").launches
    assert bytes_of(launches) == [
        (WHOLE, WHOLE), (2 * WHOLE, WHOLE),
        (2 * WHOLE, WHOLE), (2 * WHOLE, WHOLE), (2 * WHOLE, WHOLE),
    ]  # fmt: skip


def test_eager_bytes_of_a_norm_by_hand() -> None:
    launches = recorded(ready("rmsnorm"), "eager").launches
    assert bytes_of(launches) == [
        (WHOLE, WHOLE), (WHOLE, COLUMN), (COLUMN, COLUMN), (COLUMN, COLUMN),
        (WHOLE + COLUMN, WHOLE), (WHOLE + ROW, WHOLE),
        # The weight: its gradient summed up over the rows, and what is passed on.
        (2 * WHOLE, WHOLE), (WHOLE + ROW, WHOLE), (WHOLE, ROW),
        # The product with 1 / rms: the gradients of both factors, one summed up over a row.
        (2 * WHOLE, WHOLE), (WHOLE + COLUMN, WHOLE), (WHOLE, COLUMN),
        # rsqrt: its cube, a factor, the product.
        (COLUMN, COLUMN), (COLUMN, COLUMN), (2 * COLUMN, COLUMN),
        # The mean is spread over its row; the square; the sum of both ways to x.
        (COLUMN, WHOLE),
        (WHOLE, WHOLE), (WHOLE, WHOLE), (2 * WHOLE, WHOLE),
        (2 * WHOLE, WHOLE),
    ]  # fmt: skip


def test_one_kernel_would_move_inputs_and_results_only() -> None:
    graph = chosen("rmsnorm").captured.graph
    plan = all_in_one([op.name for op in graph.ops])
    assert check(graph, plan) is None
    assert planned_bytes(graph, plan) == (2 * WHOLE + ROW, 2 * WHOLE + ROW)


def test_a_group_may_reach_from_forward_into_backward_unless_another_op_is_between() -> None:
    graph = chosen("swiglu").captured.graph
    ops = [op.name for op in graph.ops]
    assert check(graph, parse_plan("multiply+d_multiply", ops, "swiglu")) is None
    illegal = check(graph, parse_plan("silu+d_silu|multiply+d_multiply2", ops, "swiglu"))
    assert illegal is not None


def test_dropout_apart_is_told_in_both_directions() -> None:
    prepared = ready("attention", dropout=0.2)
    launches = recorded(prepared, "sdpa:math").launches
    of_dropout = [launch.kernel for launch in launches if "d_dropout" in launch.ops]
    assert of_dropout == ["aten.mul.Tensor"]
    assert all(launch.ops for launch in launches)


def test_every_result_and_every_gradient_is_compared() -> None:
    pick = chosen("residual-rmsnorm")
    compared = Comparison(make_ready(pick, seed=0), pick.code)
    compared.measure_eager(whole=True)
    # y, h, and the gradients of x, of the residual and of the weight; two are the same tensor.
    sizes = {part.output: part.values.numel() for part in compared.reference.slices}
    assert sizes == {**dict.fromkeys(range(4), ROWS * COLUMNS), 4: COLUMNS}
    assert compared.reference.coverage == 1.0


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_a_wrong_gradient_does_not_pass(wrong: int) -> None:
    pick = chosen("rmsnorm")
    prepared = make_ready(pick, seed=0)
    compared = Comparison(prepared, pick.code)
    compared.measure_eager(whole=True)
    eager = find_strategy("eager")

    def build(prepared: Prepared) -> Built:
        call = eager.build(prepared).call

        def bent() -> tuple[torch.Tensor, ...]:
            results = list(prepared.results(call()))
            results[wrong] = results[wrong] * (1 + 1e-4)
            return tuple(results)

        return Built(call=bent)

    assert compared.judge(compared.errors(eager), ()).passed
    bent: Strategy = dataclasses.replace(eager, build=build)
    assert not compared.judge(compared.errors(bent), ()).passed


def test_gradients_without_randomness_are_compared_where_there_is_some() -> None:
    pick = chosen("attention", dropout=0.5)
    prepared = make_ready(pick, seed=0)
    compared = Comparison(prepared, pick.code)
    compared.measure_eager(whole=True)
    checks = compared.distribution(find_strategy("eager").build(prepared))
    accuracy = compared.judge(compared.errors(find_strategy("eager")), checks)
    assert accuracy.passed
    assert [each.passed for each in checks] == [True, True, True]
    assert len(compared.reference.max_abs) == 4


def test_the_truth_stays_in_fp64_where_the_code_asks_for_less() -> None:
    def narrowing(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x.float() * w.to(torch.bfloat16)).to(x.dtype)

    prepared = dataclasses.replace(ready("rmsnorm"), function=narrowing)
    y, of_x, of_w = fp64_results(prepared)
    x, w, tangent = (prepared.inputs[name].double() for name in ("x", "w", "grad_output"))
    for got, exact in ((y, x * w), (of_x, tangent * w), (of_w, (tangent * x).sum(0))):
        assert got.dtype is torch.float64
        assert torch.allclose(got, exact, rtol=1e-12, atol=1e-12)


def test_a_truth_that_would_not_fit_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    pick = chosen("rmsnorm")
    monkeypatch.setattr(fp64, "free_bytes", lambda _device: 1000)
    with pytest.raises(torch.OutOfMemoryError, match="The fp64 reference needs about"):
        Comparison(make_ready(pick, seed=0), pick.code)


def test_parts_of_the_truth_go_round_the_results() -> None:
    results = (torch.arange(12.0).view(6, 2), torch.tensor(3.0), torch.arange(2.0))
    parts = list(slices_of([r.double() for r in results], max_bytes=32))
    assert [part.output for part in parts[:3]] == [0, 1, 2]
    assert {part.output for part in parts[3:]} == {0}
    for part in parts:
        assert torch.equal(results[part.output][part.index].double(), part.values)


def test_the_longest_sum_is_over_rows_where_there_are_more_of_them() -> None:
    assert longest_sum(chosen("rmsnorm").captured.graph) == COLUMNS
    assert longest_sum(chosen("rmsnorm", rows=4 * COLUMNS).captured.graph) == 4 * COLUMNS


@pytest.mark.parametrize("chain", ["swiglu", "rmsnorm", "layernorm-gelu", "attention"])
def test_what_is_held_for_backward_is_in_the_estimate(chain: str) -> None:
    large = {"seq_len": 512} if chain == "attention" else {"rows": 2048, "columns": 1024}
    pick = chosen(chain, **large)
    eager = find_strategy("eager")
    built = eager.build(make_ready(pick, seed=0))
    peak = measure_peak(built.call, device=CPU).peak_bytes
    # Each tensor in a block that may be a MiB larger, which counts for much at this size.
    blocks = (1 << 20) * len(pick.captured.graph.tensors)
    assert peak <= estimate(pick.captured.graph, eager, pick) <= 1.3 * peak + blocks


def test_a_plan_without_its_random_ops_has_none_of_their_gradients() -> None:
    strategy = find_strategy("plan:softmax+dropout|d_dropout+d_softmax")
    assert strategy.plan_of is not None
    calm = chosen("attention", dropout=0)
    plan = strategy.plan_of(calm.captured.graph)
    assert plan is not None
    assert "d_dropout" not in plan.text
    with_dropout = chosen("attention", dropout=0.1)
    strategy.check_ops(with_dropout.chain, with_dropout.parameters, with_dropout.captured.graph)


def test_a_plan_that_names_an_op_of_no_pass_is_refused() -> None:
    pick = chosen("swiglu")
    strategy = find_strategy("plan:silu+d_add")
    with pytest.raises(UsageError, match="d_add"):
        strategy.check_ops(pick.chain, pick.parameters, pick.captured.graph)


def test_a_value_that_another_takes_the_place_of_in_a_loop_is_not_stored() -> None:
    """The tanh of GELU's gradient shares its buffer with the result, and stays in registers."""
    record = recorded(ready("bias-gelu"), "plan:each")
    [gradient] = [launch for launch in record.launches if launch.ops == ("d_gelu",)]
    assert bytes_of((gradient,)) == [(2 * WHOLE, WHOLE)]


@pytest.mark.slow
def test_what_backward_computes_anew_is_the_forward_op() -> None:
    record = recorded(
        prepare("rmsnorm", {"rows": 64, "columns": 256}, CPU, direction=BOTH), "compile"
    )
    forward, backward = record.launches
    assert "normalize" in forward.ops
    assert "normalize" in backward.ops
    assert "normalized" in forward.stays_on_chip
    assert "normalized" in backward.stays_on_chip
    assert set(backward.ops) >= {"d_weight", "d_weight2", "d_weight3", "d_x"}


@pytest.mark.slow
def test_inductors_own_grouping_of_both_passes_is_a_legal_plan() -> None:
    prepared = ready("rmsnorm")
    built = find_strategy("plan:inductor").build(prepared)
    assert built.plan is not None
    ops = [op.name for op in prepared.graph.ops]
    assert check(prepared.graph, parse_plan(built.plan, ops, "rmsnorm")) is None
