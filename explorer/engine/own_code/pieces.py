"""Own code that cannot be captured whole: its ops as they run, and where its graph breaks.

The code runs three times, since it asked for a run: once as it is, so that what it raises is told
by its own line; once under a mode that notes every operator, which gives the ops whatever Python
does between them; and once under Dynamo with a compiler that only notes the pieces it is given.
The pieces are laid over the ops by the order of their operators.
"""

import difflib
import itertools
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.chains.descriptor import OpName
from explorer.engine.bound import BoundFunction
from explorer.engine.capture import Captured
from explorer.engine.graph_breaks import break_of_error, watching_breaks
from explorer.engine.graph_builder import GraphBuilder, computes
from explorer.engine.op_facts import is_view
from explorer.engine.op_naming import numbered
from explorer.engine.own_code.tracer import Tracer
from explorer.model.aten_names import aten_names
from explorer.model.opgraph import GraphBreak, OpGraph

_logger = logging.getLogger(__name__)


def capture_pieces(
    bound: BoundFunction,
    *,
    device: torch.device,
    is_shown: Callable[[str], bool],
    refused: Exception,
) -> Captured:
    """Capture code by running it.

    Args:
        bound: The code with real inputs; a call may change them.
        device: Where it runs.
        is_shown: Whether a file's lines are shown beside the ops.
        refused: What export raised.
    """
    with torch.no_grad(), warnings.catch_warnings():
        # What torch warns of differs between releases, and the user's warnings come in a run.
        warnings.simplefilter("ignore")
        bound.run()
        bound.put_buffers_back()
        tracer = Tracer(bound.held, is_shown)
        with tracer:
            result = bound.run()
        bound.put_buffers_back()
        module = tracer.finished(result)
        pieces, breaks = _pieces_of(bound, is_shown)
        bound.put_buffers_back()
    builder = GraphBuilder(is_shown=is_shown, on_cuda=device.type == "cuda", tells_place=True)
    builder.add_inputs(module, tracer.names)
    nodes = [node for node in module.graph.nodes if computes(node)]
    for node, name in zip(nodes, _op_names(nodes, tracer), strict=True):
        builder.add_op(node, name, updates=(name.output,) if name.in_place else ())
    builder.mark_outputs(module)
    numbers = _laid_over([str(node.target) for node in nodes], pieces)
    return Captured(
        graph=OpGraph(
            ops=tuple(replace(op, piece=n) for op, n in zip(builder.ops, numbers, strict=True)),
            tensors=tuple(builder.tensors.values()),
            breaks=_breaks(breaks or [break_of_error(refused, is_shown)], max(numbers, default=0)),
        ),
        graph_module=module,
        nodes=tuple(builder.nodes),
    )


def _op_names(nodes: Sequence[fx.Node], tracer: Tracer) -> list[OpName]:
    """The ops by their operators; one in place is called like the other: ``mul_`` is ``mul``."""
    names = aten_names([str(node.target).replace("_.", ".") for node in nodes])
    return [
        OpName(
            name=name,
            detail="",
            output=tracer.updates.get(node) or numbered(name, tracer.names),
            in_place=node in tracer.updates,
        )
        for node, name in zip(nodes, names, strict=True)
    ]


class _Lister(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no hints there
    """Lists the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operators: list[str] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not is_view(func) and any(
            isinstance(value, torch.Tensor) for value in pytree.tree_leaves(result)
        ):
            self.operators.append(str(func))
        return result


def _pieces_of(
    bound: BoundFunction, is_shown: Callable[[str], bool]
) -> tuple[list[list[str]], list[GraphBreak]]:
    """The operators of each piece that Dynamo gives a compiler, as they run, and the breaks."""
    pieces: list[list[str]] = []

    def compiler(module: fx.GraphModule, _inputs: Sequence[Any]) -> Callable[..., Any]:
        def run(*tensors: Any) -> Any:
            with _Lister() as lister:
                result = module.forward(*tensors)
            pieces.append(lister.operators)
            return result

        return run

    torch.compiler.reset()
    with watching_breaks(is_shown) as breaks:
        try:
            compiled: Any = torch.compile(bound.target, backend=compiler, dynamic=False)
            compiled(*bound.args, **bound.kwargs)
        except Exception as error:
            # It ran without Dynamo: what fails now is Dynamo's, and is the reason itself.
            _logger.info("Dynamo fails on own code", exc_info=True)
            breaks.append(break_of_error(error, is_shown))
    torch.compiler.reset()
    return pieces, breaks


def _laid_over(ops: Sequence[str], pieces: Sequence[Sequence[str]]) -> list[int]:
    """The number of the piece of each op; ops of no piece, between two, are one by themselves."""
    flat = [(name, place) for place, piece in enumerate(pieces) for name in piece]
    of_op: list[int | None] = [None] * len(ops)
    matcher = difflib.SequenceMatcher(a=ops, b=[name for name, _ in flat], autojunk=False)
    for first, other, length in matcher.get_matching_blocks():
        for offset in range(length):
            of_op[first + offset] = flat[other + offset][1]
    numbers: list[int] = []
    for number, (_, group) in enumerate(itertools.groupby(of_op)):
        numbers += [number] * len(list(group))
    return numbers


def _breaks(found: Sequence[GraphBreak], needed: int) -> tuple[GraphBreak, ...]:
    """A break for each border between pieces, and what broke behind the last."""
    missing = max(0, needed - len(found))
    # Where there is but one place, as in a loop, it breaks there again.
    unknown = GraphBreak(place="", reason="the code between is not captured")
    return (*found, *[found[0] if len(found) == 1 else unknown] * missing)
