"""Writes down the operators that own code runs as a graph, whatever Python does between them."""

import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.engine.bound import flat_tensors
from explorer.engine.graph_breaks import is_programs
from explorer.engine.op_facts import allocates, is_view
from explorer.engine.op_naming import numbered
from explorer.engine.own_code.whole import check_dense
from explorer.engine.regions import Regions
from explorer.model.errors import UsageError

_MOST_FRAMES = 80


class Tracer(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no hints there
    """Writes down every operator as a node of a graph; tensors are known by their memory.

    Attributes:
        names: Of the graph's inputs, those found on the way last.
        updates: By node, the input that it writes in place.
    """

    # They come here to be refused in our words.
    supports_higher_order_operators = True

    def __init__(self, inputs: Mapping[str, torch.Tensor], is_shown: Callable[[str], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []
        self.updates: dict[fx.Node, str] = {}
        self._graph = fx.Graph()
        self._is_shown = is_shown
        self._holders: dict[int, tuple[fx.Node, int]] = {}
        self._inputs: dict[int, str] = {}
        self._regions = Regions()
        self._last: fx.Node | None = None
        for name, value in inputs.items():
            self._add_input(name, value)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        keywords = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            raise UsageError(
                f"The code calls torch's operator {func}, which has code of its own inside; such "
                "operators are not drawn or measured. Write it out, or leave it out."
            )
        if is_view(func):
            return func(*args, **keywords)
        given = pytree.tree_map_only(torch.Tensor, self._node_of, (args, keywords))
        # The graph is written down as Python code, and a generator cannot be.
        given = pytree.tree_map_only(torch.Generator, lambda _generator: None, given)
        result = func(*args, **keywords)
        if _tensors(result):
            self._add(func, given, result, args)
        return result

    def finished(self, result: Any) -> fx.GraphModule:
        """The graph, which returns what the code did."""
        self._graph.output(tuple(self._node_of(tensor) for tensor in flat_tensors(result)))
        for node in reversed(self._graph.nodes):
            is_memory = isinstance(node.target, torch._ops.OpOverload) and allocates(node.target)
            if is_memory and not node.users:
                self._graph.erase_node(node)
        return fx.GraphModule(torch.nn.Module(), self._graph)

    def _add(self, func: Any, given: Any, result: Any, args: tuple[Any, ...]) -> None:
        node = self._graph.call_function(func, *given)
        node.meta["val"] = pytree.tree_map_only(torch.Tensor, _meta, result)
        node.meta["stack_trace"] = "".join(_frames(self._is_shown))
        written = set()
        for value, argument in zip(args, func._schema.arguments, strict=False):
            is_written = argument.alias_info is not None and argument.alias_info.is_write
            if is_written:
                written |= {self._region(each) for each in _tensors(value)}
        for region in written & self._inputs.keys():
            self.updates[node] = self._inputs[region]
        for place, value in enumerate(result if isinstance(result, tuple | list) else [result]):
            if not isinstance(value, torch.Tensor):
                continue
            region = self._region(value)
            # cuDNN's RNNs hand out the buffer of their weights as well.
            if region in written or region not in self._inputs:
                self._holders[region] = (node, place)

    def _add_input(self, name: str, value: torch.Tensor) -> fx.Node:
        with self._graph.inserting_after(self._last) if self._last else nullcontext():
            node = self._graph.placeholder(f"input_{len(self.names)}")
        node.meta["val"] = _meta(value)
        self._last = node
        self.names.append(name)
        region = self._regions.add(_memory(value), _address(value))
        self._holders[region] = (node, 0)
        self._inputs[region] = name
        return node

    def _region(self, value: torch.Tensor) -> int:
        return self._regions.of(_memory(value), _address(value))

    def _node_of(self, tensor: torch.Tensor) -> fx.Node:
        """The node whose memory a tensor lies in, with a view of it if it is one."""
        found = self._holders.get(self._region(tensor))
        if found is None:
            # Made where torch does not see it, as by a function of C.
            node: fx.Node = self._add_input(numbered("given", self.names), tensor)
            place = 0
        else:
            node, place = found
        value = node.meta["val"]
        if isinstance(value, tuple | list):
            node = self._graph.call_function(operator.getitem, (node, place))
            value = node.meta["val"] = value[place]
        if (value.shape, value.stride(), value.dtype) != (
            tensor.shape, tensor.stride(), tensor.dtype
        ):  # fmt: skip
            node = self._graph.call_function(torch.ops.aten.alias.default, (node,))
            node.meta["val"] = _meta(tensor)
        return node


def _tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in an argument or a result."""
    return [each for each in pytree.tree_leaves(value) if isinstance(each, torch.Tensor)]


def _memory(value: torch.Tensor) -> int:
    """What tells a tensor's memory from others'."""
    try:
        return value.untyped_storage().data_ptr() or id(value)
    except (NotImplementedError, RuntimeError):
        return id(value)


def _address(value: torch.Tensor) -> int:
    """Where a tensor begins; what tells its memory where it lies at no address."""
    try:
        return value.data_ptr() or _memory(value)
    except (NotImplementedError, RuntimeError):
        return _memory(value)


def _meta(tensor: torch.Tensor) -> torch.Tensor:
    check_dense(tensor)
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _frames(is_shown: Callable[[str], bool]) -> Iterator[str]:
    """The lines that led here, as a traceback writes them, outermost first.

    They end at this program's call of the code: who called the program is not of the code.
    """
    found = []
    is_inside = False
    frame = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        code = frame.f_code
        if is_programs(code.co_filename):
            if is_inside:
                break
        else:
            is_inside = True
        if is_shown(code.co_filename):
            found.append(f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}\n')
        if frame.f_back is None:
            break
        frame = frame.f_back
    return reversed(found)
