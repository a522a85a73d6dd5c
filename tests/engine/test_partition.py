"""Graphs in pieces compute what the whole does, bit for bit, and illegal groups are refused."""

import itertools
import random
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by
from torch import fx

from explorer.engine.aten_graph import COPY
from explorer.engine.partition import (
    Partition,
    PartitionError,
    Piece,
    PiecewiseCall,
    compute_nodes,
    split,
    updates_of,
)
from explorer.engine.plan_pieces import ops_of as ops_of_piece
from explorer.engine.plan_pieces import partition_by
from explorer.engine.prepared import Prepared
from explorer.model.fusion import all_in_one, each_alone, parse_plan, plan_of
from explorer.model.legality import Illegal, IllegalReason, check, dependencies
from tests.engine.graphs import ALL_CHAINS, ops_of, plainly, random_plans, ready, slow_but

Graph = fx.GraphModule
RANDOM_PLANS = 200


def exported(function: Callable[..., Any], *inputs: torch.Tensor) -> tuple[Graph, list[Any]]:
    """A functional graph with the constants that it takes before the inputs."""

    class Module(torch.nn.Module):
        def forward(self, *values: torch.Tensor) -> Any:
            return function(*values)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # export warns of its own code
        program = torch.export.export(Module(), inputs, strict=False).run_decompositions({})
    return program.graph_module, [*program.constants.values(), *inputs]


def same(got: Sequence[Any], expected: Iterable[Any]) -> bool:
    """Whether results are equal, bit for bit."""
    pairs = zip(got, expected, strict=True)
    return all(a is b if a is None else torch.equal(a, b) for a, b in pairs)


def groups_at_random(nodes: Sequence[fx.Node], seed: int) -> list[list[fx.Node]]:
    draw = random.Random(seed)
    most = 1 + seed % len(nodes)
    groups: dict[int, list[fx.Node]] = {}
    for node in nodes:
        groups.setdefault(draw.randrange(most), []).append(node)
    return list(groups.values())


def targets(piece: Piece) -> list[Any]:
    return [node.target for node in piece.module.graph.nodes if node.op == "call_function"]


def reached(prepared: Prepared) -> dict[str, set[str]]:
    """By op, those that work on what it makes, at once or later; by the captured graph alone."""
    op_of = {captured.node: captured.op for captured in prepared.nodes}
    found: dict[str, set[str]] = {}
    for node in reversed(prepared.graph_module.graph.nodes):
        users = [user.name for user in node.users]
        found[node.name] = {op_of[user] for user in users if user in op_of}.union(
            *(found[user] for user in users)
        )
    return {op: found[node] for node, op in op_of.items()}


def check_reason(illegal: Illegal, prepared: Prepared) -> None:
    """Each op named as lying between does, all are in the sentence, and the cure is one."""
    after, group = reached(prepared), illegal.ops
    assert illegal.reason is IllegalReason.BETWEEN
    for op in illegal.between:
        assert op not in group
        assert any(op in after[member] for member in group)
        assert after[op] & set(group)
        assert op in illegal.sentence
    assert {*group, *illegal.between} <= set(illegal.cure)
    ops = [op.name for op in prepared.graph.ops]
    assert check(prepared.graph, plan_of(ops, [illegal.cure])) is None


@pytest.mark.parametrize("chain", slow_but({*ALL_CHAINS} - {"adam-list", "decoder-block"}))
def test_random_partitions_of_a_chain_equal_the_whole(chain: str) -> None:
    prepared, ops = ready(chain), ops_of(chain)
    before = {name: tensor.clone() for name, tensor in prepared.inputs.items()}
    torch.manual_seed(0)
    expected = prepared.graph_module(*before.values())
    legal = refused = 0
    for plan in random_plans(chain, RANDOM_PLANS):
        assert parse_plan(plan.text, ops, chain) == plan
        illegal = check(prepared.graph, plan)
        if illegal is not None:
            check_reason(illegal, prepared)
            with pytest.raises(PartitionError) as caught:
                partition_by(prepared, plan)
            names = {node.node: node.op for node in prepared.nodes}
            at_fault = {names[node.name] for node in caught.value.nodes}
            blamed = [group for group in plan.groups if at_fault & set(group)]
            assert check(prepared.graph, plan_of(ops, blamed)) is not None
            refused += 1
            continue
        partition = partition_by(prepared, plan)
        inputs = [tensor.clone() for tensor in before.values()]
        held = dict(zip(before, inputs, strict=True))
        torch.manual_seed(0)
        got = plainly(partition)(*inputs)
        assert same(got, expected), plan.text
        in_place = {held[name].data_ptr() for name in prepared.updated}
        assert in_place <= {value.data_ptr() for value in got if value is not None}
        assert sorted(ops_of_piece(p, prepared) for p in partition.pieces) == sorted(plan.groups)
        legal += 1
    assert legal >= len(ops)
    assert refused or len(dependencies(prepared.graph)) < 2


def test_views_are_done_anew_in_each_group_and_results_of_one_op_stay_with_it() -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        doubled = a.view(4, -1).transpose(0, 1) * 2
        values, places = torch.topk(a, 2, dim=1)
        parts = torch.split(a, 2)
        spread, mean = torch.var_mean(b, dim=1)
        few, many = torch.tensor([1.0, 2.0]), torch.arange(64.0).view(8, 8)
        return (
            doubled.t(), doubled.reshape(-1) + 1, values * 2, places, parts[1] * parts[0],
            spread - mean, a.view(-1), doubled, doubled, (b[:, :2] * few).sum(), None, a,
            parts[1], b + many,
        )  # fmt: skip

    graph, inputs = exported(function, torch.randn(8, 8), torch.randn(8, 8))
    expected = graph(*inputs)
    nodes = compute_nodes(graph)
    ran = 0
    for seed in range(RANDOM_PLANS):
        try:
            partition = split(graph, groups_at_random(nodes, seed))
        except PartitionError:
            continue
        assert same(plainly(partition)(*inputs), expected)
        ran += 1
    assert ran > RANDOM_PLANS / 4


def test_a_node_in_two_groups_is_a_mistake() -> None:
    graph, _ = exported(lambda a: (a * 2) + 1, torch.ones(2))
    nodes = compute_nodes(graph)
    with pytest.raises(ValueError, match="two groups"):
        split(graph, [nodes, nodes[:1]])


def test_a_group_around_another_op_is_refused_and_both_are_named() -> None:
    graph, _ = exported(lambda a: (a.exp() * a.exp().sum()).sin(), torch.ones(2))
    first, between, last = (
        next(n for n in compute_nodes(graph) if name in str(n.target))
        for name in ("exp", "sum", "mul")
    )
    with pytest.raises(PartitionError) as caught:
        split(graph, [[n for n in compute_nodes(graph) if "exp" in str(n.target)] + [last]])
    assert {first, between, last} <= set(caught.value.nodes)
    assert f"{between.name}" in str(caught.value)


def test_a_value_is_let_go_of_when_it_was_last_used() -> None:
    graph, [x] = exported(lambda a: ((a * 2).exp() + 1).sin(), torch.ones(4))
    partition = split(graph, [])
    left: list[bool] = []

    def call_of(module: Graph) -> Callable[[list[Any]], tuple[Any, ...]]:
        def call(values: list[Any]) -> tuple[Any, ...]:
            computed = module(*values)
            held = weakref.ref(values.pop())
            left.append(held() is not None)
            return tuple(computed)

        return call

    PiecewiseCall(partition, [call_of(piece.module) for piece in partition.pieces])(x)
    assert left == [True, False, False, False]  # the input is the caller's


def test_a_tensor_updated_several_times_in_one_group_is_stored_once() -> None:
    prepared = ready("adam")
    ops = ops_of("adam")
    [whole] = partition_by(prepared, all_in_one(ops)).pieces
    assert targets(whole).count(COPY) == 3
    assert len(whole.updated) == 3
    assert whole.outputs == ()
    apart = partition_by(prepared, each_alone(ops)).pieces
    assert [targets(piece).count(COPY) for piece in apart] == [1, 1, 1, 0, 0, 0, 1]
    # What is read later is read from the input itself: no value is handed out beside it.
    assert [len(piece.outputs) for piece in apart] == [0, 0, 0, 1, 1, 1, 0]
    both = partition_by(prepared, plan_of(ops, [["decay", "variance"]])).pieces
    [piece] = [piece for piece in both if len(piece.nodes) == 2]
    assert targets(piece).count(COPY) == 1


def aot_graphs(
    function: Callable[..., Any], inputs: Sequence[torch.Tensor], run: Callable[[Graph], Any]
) -> Callable[..., Any]:
    """The function with ``run`` of each graph that AOTAutograd makes in place of the graph."""
    from torch._dynamo.backends.common import aot_autograd

    def compiler(graph: Graph, _inputs: Sequence[Any]) -> Any:
        call = run(graph)

        def boxed(values: list[Any]) -> Any:
            return call(*values)

        boxed._boxed_call = True  # type: ignore[attr-defined] # how torch asks for a list
        return boxed

    torch._dynamo.reset()
    backend = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        decompositions={},
        keep_inference_input_mutations=True,
    )
    compiled: Callable[..., Any] = torch.compile(function, backend=backend, dynamic=False)
    return compiled


def layernorm_gelu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x, (x.shape[-1],), weight, bias), approximate="tanh")


def scores(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25, dim=-1) @ v


@pytest.mark.parametrize(
    ("function", "shapes"),
    [(layernorm_gelu, ((6, 16), (16,), (16,))), (scores, ((2, 8, 16), (2, 8, 16), (2, 8, 16)))],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forward_and_backward_graphs_can_be_split(
    function: Callable[..., torch.Tensor], shapes: Sequence[tuple[int, ...]]
) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    expected = function(*inputs)
    weight = torch.randn_like(expected)
    gradients = torch.autograd.grad(expected, inputs, weight)
    for size in (1, 2, 100):
        graphs: list[Partition] = []

        def run(
            graph: Graph, size: int = size, graphs: list[Partition] = graphs
        ) -> Callable[..., Any]:
            nodes = compute_nodes(graph)
            groups = [nodes[i : i + size] for i in range(0, len(nodes), size)]
            graphs.append(split(graph, groups))
            return plainly(graphs[-1])

        got = aot_graphs(function, inputs, run)(*inputs)
        assert torch.equal(got, expected)
        assert same(torch.autograd.grad(got, inputs, weight), gradients)
        assert len(graphs) == 2
        if size == 1:
            assert all(len(piece.nodes) == 1 for graph in graphs for piece in graph.pieces)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_graph_stores_at_its_end_is_written_by_the_kernel_that_computes_it() -> None:
    def step(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        m.mul_(0.9).add_(g)
        p.sub_(m * 0.1)
        return p.sum()

    def inputs() -> list[torch.Tensor]:
        return [torch.arange(6.0), torch.ones(6), torch.full((6,), 2.0)]

    expected = inputs()
    total = step(*expected)
    with torch.no_grad():
        for size in (1, 2, 100):
            held: list[Partition] = []

            def run(
                graph: Graph, size: int = size, held: list[Partition] = held
            ) -> Callable[..., Any]:
                assert len(updates_of(graph)) == 2
                nodes = compute_nodes(graph)
                assert all(node.target is not COPY for node in nodes)
                groups = [nodes[i : i + size] for i in range(0, len(nodes), size)]
                held.append(split(graph, groups))
                return plainly(held[-1])

            got = inputs()
            assert torch.equal(aot_graphs(step, got, run)(*got), total)
            assert same(got, expected)
            stored = itertools.chain.from_iterable(piece.updated for piece in held[0].pieces)
            assert len(list(stored)) == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_store_that_has_to_wait_is_a_piece_of_its_own() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        new = x + 1
        both = x * new  # needs what x held and what it will hold
        x.copy_(new)
        return both

    held: list[Partition] = []

    def run(graph: Graph) -> Callable[..., Any]:
        held.append(split(graph, [[node] for node in compute_nodes(graph)]))
        return plainly(held[-1])

    x = torch.arange(4.0)
    with torch.no_grad():
        both = aot_graphs(function, [x], run)(x)
    assert torch.equal(both, torch.arange(4.0) * (torch.arange(4.0) + 1))
    assert torch.equal(x, torch.arange(4.0) + 1)
    assert [len(piece.updated) for piece in held[0].pieces] == [0, 0, 1]
