"""Own code captured whole: its functional ATen graph by strict export, on tensors without memory.

The module's parameters and buffers, and tensors that the code holds otherwise, become inputs of the
graph; so do the tensors among its arguments. Whatever it hands out becomes a row of tensors.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from explorer.chains.descriptor import OpName
from explorer.engine.bound import flat_tensors
from explorer.engine.capture import (
    Captured,
    captured_of,
    computing_nodes,
    exported,
    taken_mark,
)
from explorer.engine.graph_builder import CaptureError, GraphBuilder, computes
from explorer.engine.internals import internal
from explorer.engine.joint import place_of, updated_by
from explorer.engine.op_facts import is_view
from explorer.engine.op_naming import operator_names
from explorer.engine.own_code.arguments import Arguments
from explorer.model.errors import UsageError

_OWN = "own."
_NUMBERS = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)
"""What gives Python a number."""


class Called(torch.nn.Module):
    """Own code as export takes it: tensors in, tensors out."""

    def __init__(self, target: Any, arguments: Arguments) -> None:
        super().__init__()
        self.own = target
        self.arguments = arguments

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Call the code with these tensors in the place of its arguments' own."""
        args, kwargs = self.arguments.rebuilt(tensors)
        return flat_tensors(self.own(*args, **kwargs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A captured whole.

    Attributes:
        captured: The graph, with its backward pass if one was asked for.
        forward: The functional graph of the forward pass, which stores nothing.
        names: What its inputs are called, in order, those of a backward pass left out.
        constants: Of these the ones that the code made itself while it was captured.
        update_targets: By place among the values that it returns before its results, which are
            what inputs become: the place of the input that takes it.
    """

    captured: Captured
    forward: torch.fx.GraphModule
    names: tuple[str, ...]
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)
    update_targets: tuple[int, ...] = ()


def capture_whole(
    target: Any,
    arguments: Arguments,
    *,
    device: torch.device,
    is_shown: Callable[[str], bool],
    wanted: Callable[[str], bool] | None,
) -> Whole:
    """Capture code on fake tensors.

    Args:
        target: A function, or a module whose parameters are fake.
        arguments: With fake tensors.
        device: Where it would run.
        is_shown: Whether a file's lines are shown beside the ops.
        wanted: Whether an input's gradient is wanted, for a backward pass; None for none.

    Raises:
        Exception: Whatever export raises where it cannot capture the whole.
    """
    taken = [name for name, _ in held_tensors(target)]
    tensors = arguments.tensors(taken)
    with _breaking_as_compiled():
        program = exported(Called(target, arguments), tuple(tensors.values()), ())
    _check_numbers(program)
    names = _names(program, tuple(tensors))
    called = dict(zip(_placeholders(program.graph_module), names, strict=True))
    inputs = {node.name: name for node, name in called.items()}
    updates, stores = _updates(program, inputs)
    nodes = computing_nodes(program)
    for node in nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            check_dense(value)
            _check_size(value)
    differentiated: tuple[str, ...] = ()
    if wanted is not None:
        updated = {inputs[target] for target in updated_by(program).values()}
        candidates = [name for name in names if wanted(name) and name not in updated]
        differentiated = _with_gradient(program, names, candidates)
    captured = captured_of(
        program,
        names,
        dict(zip([n.name for n in nodes], _op_names(nodes, updates, names), strict=True)),
        builder=GraphBuilder(is_shown=is_shown, on_cuda=device.type == "cuda", tells_place=True),
        updates=updates,
        differentiated=differentiated,
    )
    forward = copy.deepcopy(program.graph_module)
    _store(captured.graph_module, stores)
    return Whole(
        captured=replace(captured, stored=tuple(names[place] for place in stores.values())),
        forward=forward,
        names=names,
        constants=_constants(program, names),
        update_targets=tuple(list(inputs).index(target) for target in updated_by(program).values()),
    )


@contextmanager
def _breaking_as_compiled() -> Iterator[None]:
    """Have export refuse what prints or warns, and RNNs, as a compiler does."""
    config = internal("torch.export._trace:DEFAULT_EXPORT_DYNAMO_CONFIG")
    before = config.reorderable_logging_functions, config.allow_rnn
    config.reorderable_logging_functions, config.allow_rnn = set(), False
    try:
        yield
    finally:
        config.reorderable_logging_functions, config.allow_rnn = before


def check_dense(value: object) -> None:
    """Refuse a value that has no shape and strides.

    Raises:
        UsageError: It is a sparse or nested tensor.
    """
    if isinstance(value, torch.Tensor) and (value.layout is not torch.strided or value.is_nested):
        kind = "nested" if value.is_nested else "sparse"
        raise UsageError(f"The code makes a {kind} tensor; only dense ones are drawn and measured.")


def _check_size(value: object) -> None:
    """Refuse a value whose size depends on values: a compiler breaks there, too.

    Raises:
        CaptureError: It does.
    """
    if isinstance(value, torch.Tensor) and not all(isinstance(size, int) for size in value.shape):
        raise CaptureError("The size of a result depends on values.")


def _check_numbers(program: torch.export.ExportedProgram) -> None:
    """Refuse what takes a number out of a tensor: export captures that, a compiler breaks there.

    Raises:
        CaptureError: It does.
    """
    if any(node.target in _NUMBERS for node in program.graph.nodes):
        raise CaptureError("The code calls Tensor.item(), where a compiler breaks the graph.")


def held_tensors(target: Any) -> list[tuple[str, torch.Tensor]]:
    """A module's parameters and buffers by their dotted names; none of a function."""
    if not isinstance(target, torch.nn.Module):
        return []
    return [*target.named_parameters(), *target.named_buffers()]


def _placeholders(module: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _names(program: torch.export.ExportedProgram, arguments: Sequence[str]) -> tuple[str, ...]:
    """What the placeholders are called.

    Raises:
        CaptureError: One is no tensor.
    """
    left = list(arguments)
    names = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            names.append(left.pop(0))
        elif spec.target is not None and spec.kind in (
            InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR
        ):  # fmt: skip
            names.append(spec.target.removeprefix(_OWN))
        else:
            raise CaptureError(f"The code takes {spec.kind.name.lower()}, which is no tensor.")
    return tuple(names)


def _updates(
    program: torch.export.ExportedProgram, inputs: Mapping[str, str]
) -> tuple[dict[str, tuple[str, ...]], dict[int, int]]:
    """What is updated: by an op in place, or by storing a value that no op writes there.

    Returns:
        By compute node, the input that it writes in place; and by place among what the graph
        returns, the place of the input that takes it.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    order = list(inputs)
    updates = {
        node.name: tuple(inputs[name] for name in mark)
        for node in computing_nodes(program)
        if (mark := taken_mark(node))
        and all(_alike(node, nodes[name]) for name in mark)
        and len(mark) == 1
    }
    stores: dict[int, int] = {}
    for place, (value, target) in enumerate(updated_by(program).items()):
        maker = _maker(nodes[value])
        if maker is not None and _alike(maker, nodes[target]):
            updates[maker.name] = (inputs[target],)
        else:
            stores[place] = order.index(target)
            for name in [n for n, targets in updates.items() if inputs[target] in targets]:
                del updates[name]
    return updates, stores


def _maker(node: torch.fx.Node) -> torch.fx.Node | None:
    """The op whose first result a node's value is, None where it is another or an input."""
    while node.op == "call_function" and is_view(node.target):
        if place_of(node):
            return None
        node = node.all_input_nodes[0]
    return node if computes(node) else None


def _alike(node: torch.fx.Node, other: torch.fx.Node) -> bool:
    one, two = node.meta.get("val"), other.meta.get("val")
    if not isinstance(one, torch.Tensor) or not isinstance(two, torch.Tensor):
        return False
    return one.shape == two.shape and one.dtype == two.dtype


def _store(module: torch.fx.GraphModule, stores: Mapping[int, int]) -> None:
    """Have a graph copy values onto inputs at its end."""
    [output] = [node for node in module.graph.nodes if node.op == "output"]
    placeholders = _placeholders(module)
    for place, target in stores.items():
        value = output.args[0][place]
        with module.graph.inserting_before(output):
            copy = module.graph.call_function(
                torch.ops.aten.copy_.default, (placeholders[target], value)
            )
        copy.meta["val"] = placeholders[target].meta["val"]
    if stores:
        module.recompile()


def _op_names(
    nodes: Sequence[torch.fx.Node], updates: Mapping[str, tuple[str, ...]], inputs: Sequence[str]
) -> list[OpName]:
    """The ops by their operators; what they make is called so too, unless an input is."""
    return [
        replace(name, output=f"{name.output}_out")
        if not name.in_place and name.output in inputs
        else name
        for name in operator_names(nodes, updates)
    ]


def _with_gradient(
    program: torch.export.ExportedProgram, names: Sequence[str], candidates: Sequence[str]
) -> tuple[str, ...]:
    """Those inputs on which a result depends in a way that can be differentiated."""
    module = program.graph_module
    fake = [node.meta["val"] for node in _placeholders(module)]
    if not candidates:
        return ()
    with fake[0].fake_mode, torch.enable_grad():
        given = {
            name: value.detach().requires_grad_() if name in candidates else value
            for name, value in zip(names, fake, strict=True)
        }
        results = torch.fx.Interpreter(module).run(*given.values())[len(updated_by(program)) :]
        roots = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
        if not roots:
            return ()
        gradients = torch.autograd.grad(
            roots,
            [given[name] for name in candidates],
            [torch.empty_like(root) for root in roots],
            allow_unused=True,
        )
    return tuple(n for n, g in zip(candidates, gradients, strict=True) if g is not None)


def _constants(
    program: torch.export.ExportedProgram, names: Sequence[str]
) -> dict[str, torch.Tensor]:
    """Tensors with values that the code makes of numbers; those it holds are the module's."""
    fake = internal("torch._subclasses.fake_tensor:FakeTensor")
    return {
        name.removeprefix(_OWN): value
        for name, value in program.constants.items()
        if isinstance(value, torch.Tensor)
        and not isinstance(value, fake)
        and name.removeprefix(_OWN) in names
    }
