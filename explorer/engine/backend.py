"""A fusion plan as a backend of ``torch.compile``, for anyone's program.

Every graph that Dynamo finds goes through AOTAutograd, undecomposed, and is split into the plan's
groups, forward and backward each by a plan of its own. Inductor compiles each group by itself.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from explorer.engine.aten_graph import compute_nodes
from explorer.engine.data_flow import DataFlow, PartitionError
from explorer.engine.internals import InternalMovedError, internal, settings
from explorer.engine.op_facts import kind_of
from explorer.engine.partition import Partition, PiecewiseCall, split
from explorer.engine.pieces import PIECES
from explorer.model.aten_names import (
    aten_names,
    check_aten_plan,
    operator_name,
    parse_aten_plan,
)
from explorer.model.errors import UsageError
from explorer.model.fusion import ALL, BETWEEN, EACH, INDUCTOR, SWEEP, TRITON, WITHIN, FusionPlan
from explorer.model.legality import check
from explorer.model.opgraph import Op, OpGraph

Compiled = Callable[..., Any]
FORWARD, BACKWARD = "forward graph", "backward graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenGraph:
    """A graph that a backend was given.

    Attributes:
        title: ``forward graph`` or ``backward graph``.
        names: Of its ops, in order.
        overloads: What each is to torch.
        lines: The line of code that each comes from, empty where unknown.
        plan: What it was split into.
    """

    title: str
    names: tuple[str, ...]
    overloads: tuple[str, ...]
    lines: tuple[str, ...]
    plan: FusionPlan

    @property
    def text(self) -> str:
        """A line an op, with the name that a plan calls it by."""
        widths = [
            max((len(cell) for cell in row), default=0) for row in (self.names, self.overloads)
        ]
        rows = (
            f"  {name.ljust(widths[0])}  {overload.ljust(widths[1])}  {line}".rstrip()
            for name, overload, line in zip(self.names, self.overloads, self.lines, strict=True)
        )
        return "\n".join((f"{self.title}: {self.plan.text or 'no op'}", *rows))


class PlanBackend:
    """What ``torch.compile(function, backend=...)`` takes; see :func:`explorer.backend`.

    Attributes:
        graphs: Those it was given so far, in the order in which they were compiled.
    """

    def __init__(self, plan: str, *, backward: str, names: Mapping[str, str]) -> None:
        """Take the plans; nothing is compiled yet.

        Args:
            plan: Of forward graphs.
            backward: Of backward graphs.
            names: More names for ops, with the ATen name of each.

        Raises:
            UsageError: A plan cannot be read, whatever the graph.
        """
        self._plans = {FORWARD: _translated(plan, names), BACKWARD: _translated(backward, names)}
        self.graphs: list[SeenGraph] = []
        # Dynamo enters it around each call; torch.compile hides it from Dynamo, see compile.
        self.backend_ctx_ctor = _whole_operators

    def __call__(self, module: fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        """Compile a graph of Dynamo's.

        Raises:
            UsageError: The plan does not fit the graph, or is not legal there.
        """
        aot_autograd = internal("torch._dynamo.backends.common:aot_autograd")
        compiler = aot_autograd(
            fw_compiler=functools.partial(self._compile, FORWARD),
            bw_compiler=functools.partial(self._compile, BACKWARD),
            decompositions={},
            keep_inference_input_mutations=True,
        )
        compiled: Compiled = compiler(module, example_inputs)
        return compiled

    def compile(self, function: Compiled) -> Compiled:
        """The function with the plan applied, compiled anew for other sizes.

        The same as ``torch.compile`` with this backend, but that operators stay whole which Dynamo
        otherwise takes apart before a backend sees them, such as ``addcmul_``.
        """
        optimize = internal("torch._dynamo:optimize")
        compiled: Compiled = optimize(self, dynamic=False)(function)
        return compiled

    def describe(self) -> str:
        """The graphs so far, a line an op, with the names that a plan calls them by."""
        return "\n\n".join(graph.text for graph in self.graphs) or "No graph was compiled yet."

    def _compile(self, title: str, module: fx.GraphModule, _inputs: Sequence[Any]) -> Compiled:
        """Compile an ATen graph; the values come as a list that may be emptied."""
        nodes = compute_nodes(module)
        names = aten_names([str(node.target) for node in nodes])
        by_name = dict(zip(names, nodes, strict=True))
        try:
            _check_shapes(module)
            plan = _parsed(self._plans[title], names, title)
            partition = _split(module, plan, by_name)
        except UsageError as error:
            raise _as_it_is(str(error)) from None
        self.graphs.append(_seen(title, by_name, plan))
        call = self._call(module, partition)

        def boxed(inputs: list[Any]) -> list[Any]:
            results: list[Any] = call(inputs)
            return results

        # How AOTAutograd tells that the list may be emptied, so that nothing outlives its use.
        boxed._boxed_call = True  # type: ignore[attr-defined]
        return boxed

    def _call(self, _module: fx.GraphModule, partition: Partition) -> Compiled:
        """What carries the graph out; takes its inputs in a list, which it may empty."""
        # Of the graph that is being compiled Inductor must know nothing while it compiles a piece.
        with internal("torch._guards:tracing")(None):
            calls = [PIECES.compiled(piece).call for piece in partition.pieces]
        return PiecewiseCall(partition, calls).emptying


class _Listing(PlanBackend):
    """Notes the ops of each graph and runs it uncompiled."""

    def __init__(self) -> None:
        super().__init__(EACH, backward=EACH, names={})

    def _call(self, module: fx.GraphModule, partition: Partition) -> Compiled:
        return lambda inputs: module(*inputs)


def plan_ops(function: Callable[..., Any], inputs: Sequence[Any]) -> str:
    """See :func:`explorer.plan_ops`."""
    seen = _Listing()
    result = seen.compile(function)(*inputs)
    leaves = pytree.tree_leaves(result)
    made = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
    given = [*pytree.tree_leaves(inputs), *getattr(function, "parameters", tuple)()]
    wanted = [x for x in given if isinstance(x, torch.Tensor) and x.requires_grad]
    if made and wanted:
        ones = [torch.ones_like(x) for x in made]
        torch.autograd.grad(made, wanted, ones, allow_unused=True)
    return seen.describe()


def _translated(plan: str, names: Mapping[str, str]) -> str:
    """The plan in ATen names; the presets alone need a graph to be understood.

    Raises:
        UsageError: It cannot be read, or is a preset that only a chain has.
    """
    text = plan.strip()
    if text in (INDUCTOR, TRITON, SWEEP):
        raise UsageError(
            f"A backend has no plan {text!r}; name ops, or take {EACH} (one op a kernel) or {ALL} "
            "(all in one)."
        )
    if text in (EACH, ALL):
        return text
    translated = BETWEEN.join(
        WITHIN.join(names.get(name.strip(), name.strip()) for name in group.split(WITHIN))
        for group in text.split(BETWEEN)
    )
    check_aten_plan(translated)
    return translated


def _parsed(text: str, names: Sequence[str], title: str) -> FusionPlan:
    """Read a plan against a graph's ops.

    Raises:
        UsageError: It names one that the graph does not have.
    """
    try:
        return parse_aten_plan(text, names, f"The {title}")
    except UsageError as error:
        if not any(name.startswith("fma") for name in names):
            raise
        raise UsageError(
            f"{error} torch.compile has taken an operator such as addcmul_ apart into fma; the "
            "backend's own compile(function) leaves it whole."
        ) from error


def _check_shapes(module: fx.GraphModule) -> None:
    """Refuse sizes that are not known: kernels are made for the sizes at hand.

    Raises:
        UsageError: There is one.
    """
    for node in module.graph.nodes:
        values = pytree.tree_leaves(node.meta.get("val"))
        is_input = node.op == "placeholder"
        if not any(_is_symbolic(value, alone=is_input) for value in values):
            continue
        if is_input:
            raise UsageError(
                "A fusion plan is compiled for sizes that are known; call torch.compile with "
                "dynamic=False."
            )
        raise UsageError(
            f"A fusion plan is compiled for sizes that are known, and that of what "
            f"{operator_name(str(node.target))} gives depends on values; leave "
            "capture_scalar_outputs and capture_dynamic_output_shape_ops of torch._dynamo.config "
            "off."
        )


def _is_symbolic(value: object, *, alone: bool) -> bool:
    """Whether a tensor's size is not known; ``alone``: or a value is such a size."""
    if isinstance(value, torch.Tensor):
        strides = value.stride() if value.layout is torch.strided else ()
        return any(isinstance(size, torch.SymInt) for size in (*value.shape, *strides))
    return alone and isinstance(value, torch.SymInt)


def _split(module: fx.GraphModule, plan: FusionPlan, by_name: Mapping[str, fx.Node]) -> Partition:
    """Split a graph into a plan's groups.

    Raises:
        UsageError: The plan is not legal.
    """
    groups = [[by_name[name] for name in group] for group in plan.groups]
    try:
        return split(module, groups)
    except PartitionError as error:
        illegal = check(_op_graph(module, by_name), plan)
        raise UsageError(illegal.sentence if illegal is not None else str(error)) from error


def _op_graph(module: fx.GraphModule, by_name: Mapping[str, fx.Node]) -> OpGraph:
    """What an op graph knows of who needs whose result; stores are left to the end."""
    flow = DataFlow(module, [], {})
    nodes = set(by_name.values())

    def maker(value: fx.Node) -> fx.Node:
        while value not in nodes and value.all_input_nodes:
            value = value.all_input_nodes[0]
        return value

    return OpGraph(
        ops=tuple(
            Op(
                name=name,
                aten=str(node.target),
                kind=kind_of(node.target),
                reads=tuple(maker(value).name for value in flow.reads(node)),
                writes=(node.name,),
                flops=0,
            )
            for name, node in by_name.items()
        ),
        tensors=(),
    )


def _seen(title: str, by_name: Mapping[str, fx.Node], plan: FusionPlan) -> SeenGraph:
    return SeenGraph(
        title=title,
        names=tuple(by_name),
        overloads=tuple(str(node.target) for node in by_name.values()),
        lines=tuple(_line(node) for node in by_name.values()),
        plan=plan,
    )


def _line(node: fx.Node) -> str:
    """The user's own line of code: the last of a stack trace, without marks under it."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    last = next((line for line in reversed(lines) if line.strip("~^")), "")
    # What was typed at a prompt has a place and no text.
    return "" if last.startswith('File "') else last


def _as_it_is(sentence: str) -> UsageError:
    """A refusal that torch hands on to the user, instead of one wrapped in its own error."""
    try:
        passed_on = internal("torch._dynamo.exc:ShortenTraceback")
    except InternalMovedError:
        return UsageError(sentence)
    kind = type("PlanRefusedError", (UsageError, passed_on), {})
    refused: UsageError = kind(sentence, first_useful_frame=None)
    return refused


def _whole_operators() -> AbstractContextManager[None]:
    """While Dynamo reads code: operators such as addcmul stay whole, as eager runs them."""
    return settings("torch._dynamo.config", enable_dynamo_decompositions=False)
