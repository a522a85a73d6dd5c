"""Somebody's own code from its name to a captured chain that is ready to be run.

What is captured is made on tensors without memory; what runs is made anew from the seed. Where the
code cannot be captured so, it is run on real inputs and captured as it runs.
"""

import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from explorer.chains.descriptor import Chain
from explorer.engine.bound import BoundFunction
from explorer.engine.capture import Captured
from explorer.engine.chain_functions.base import InputSpec
from explorer.engine.graph_breaks import is_users
from explorer.engine.graph_builder import CaptureError
from explorer.engine.own_code.calm import Calm, calm_of
from explorer.engine.own_code.errors import IsOwn, told_by_line
from explorer.engine.own_code.load import load_target
from explorer.engine.own_code.making import Callee, MakeCallee, maker, without_memory
from explorer.engine.own_code.own_backward import own_backward_notes
from explorer.engine.own_code.pieces import capture_pieces
from explorer.engine.own_code.whole import Whole, capture_whole, held_tensors
from explorer.model.errors import UsageError
from explorer.model.opgraph import OpKind
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Scalar

_logger = logging.getLogger(__name__)

_MOST_SOURCE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCaptured:
    """Own code, captured.

    Attributes:
        captured: Its graph.
        make: Makes it anew.
        is_own: Which files are the user's.
        input_specs: The inputs of the graph, those of a backward pass left out.
        whole: What was captured, None if it was captured in pieces.
        source: The code's text.
        notes: What every run should say.
    """

    captured: Captured
    make: MakeCallee
    is_own: IsOwn
    input_specs: dict[str, InputSpec]
    whole: Whole | None = None
    source: str | None = None
    notes: tuple[str, ...] = ()
    _calm: list[Calm] = field(default_factory=list)

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers."""
        return any(op.kind is OpKind.RANDOM for op in self.captured.graph.ops)

    def ready(
        self, device: torch.device, seed: int
    ) -> tuple[BoundFunction, dict[str, torch.Tensor]]:
        """The code with its inputs on a device, and these by name.

        Raises:
            OwnCodeError: The code raised something while it was made.
        """
        bound = bound_of(self.make(seed, False), self.captured.differentiated)
        inputs = {}
        constants = {} if self.whole is None else self.whole.constants
        for name in self.input_specs:
            value = bound.held.get(name)
            if value is None:
                value = constants[name] if name in constants else _attribute(bound.target, name)
            inputs[name] = value.detach() if name in bound.held else value.detach().to(device)
        return bound, inputs

    def calm(self) -> Calm:
        """The code without its randomness.

        Raises:
            NoReferenceError: It cannot be taken out.
        """
        if not self._calm:
            self._calm.append(calm_of(self.captured, self.whole))
        return self._calm[0]


_HANDED: dict[str, tuple[MakeCallee, str | None]] = {}
"""Code that a program handed over itself, by name, with its text."""


@contextmanager
def handing_over(name: str, code: Any, make: MakeCallee) -> Iterator[None]:
    """Let a name mean an object of this process inside the ``with`` block.

    Args:
        name: As of a chain.
        code: The function or module.
        make: Gives it with its arguments.
    """
    _HANDED[name] = (make, _source_text(code))
    try:
        yield
    finally:
        del _HANDED[name]


def capture_own(
    chain: Chain,
    parameters: Mapping[str, Scalar],
    own: OwnCode,
    direction: Direction,
    device: torch.device,
) -> OwnCaptured:
    """Load code by its name and capture it.

    Args:
        chain: Its descriptor; the id is the name.
        parameters: Of its texts, defaults filled in.
        own: How it is called.
        direction: Whether a backward pass is wanted as well.
        device: Where it is to run.

    Raises:
        UsageError: It is not there, or is called with other arguments than it takes.
        OwnCodeError: It raised something; the sentence names its line.
    """
    if chain.id in _HANDED:
        make, source = _HANDED[chain.id]
        return capture_callee(make, direction, device, source=source)
    target = load_target(chain.id)
    make = maker(target, own, parameters, device)
    return capture_callee(
        make, direction, device, is_own=target.is_own, source=_source_text(target.found)
    )


def capture_callee(
    make: MakeCallee,
    direction: Direction,
    device: torch.device,
    *,
    is_own: IsOwn = is_users,
    source: str | None = None,
) -> OwnCaptured:
    """Capture code that can be made; see :func:`capture_own`."""
    trains = direction is Direction.FORWARD_BACKWARD
    whole: Whole | None = None
    try:
        callee = without_memory(make)
        frozen = {n for n, t in held_tensors(callee.target) if not t.requires_grad}
        held = dict(held_tensors(callee.target))
        named = {**held, **callee.arguments.tensors(list(held))}

        def wanted(name: str) -> bool:
            value = named.get(name)
            return value is not None and value.is_floating_point() and name not in frozen

        whole = capture_whole(
            callee.target, callee.arguments, device=device, is_shown=is_own,
            wanted=wanted if trains else None,
        )  # fmt: skip
        captured, notes = whole.captured, callee.notes
        if trains:
            notes += own_backward_notes(callee.target, callee.arguments)
    except UsageError:
        raise
    except Exception as refused:
        # Whatever export or a constructor without memory does not take: then it is run.
        _logger.info("own code is captured by running it", exc_info=True)
        captured, notes = _by_running(make, device, is_own, refused)
    _check_results(captured)
    if trains:
        _check_trains(captured, whole)
    return OwnCaptured(
        captured=captured,
        make=make,
        is_own=is_own,
        input_specs=_specs(captured),
        whole=whole,
        source=source,
        notes=notes,
    )


def _by_running(
    make: MakeCallee, device: torch.device, is_own: IsOwn, refused: Exception
) -> tuple[Captured, tuple[str, ...]]:
    callee = make(0, False)
    with told_by_line("running it", is_own):
        captured = capture_pieces(bound_of(callee), device=device, is_shown=is_own, refused=refused)
    return captured, callee.notes


def _check_results(captured: Captured) -> None:
    """Make sure that there is something to compare.

    Raises:
        UsageError: The code hands out no tensor and changes none.
    """
    [output] = [node for node in captured.graph_module.graph.nodes if node.op == "output"]
    if not output.all_input_nodes:
        raise UsageError(
            "The code returns no tensor and changes none of its inputs, so that there is nothing "
            "to compare; have it return its results."
        )


def _check_trains(captured: Captured, whole: Whole | None) -> None:
    """Make sure that a backward pass was captured.

    Raises:
        UsageError: It could not be.
    """
    if whole is None:
        first = captured.graph.breaks[0]
        place = f" at {first.place}" if first.place else ""
        raise UsageError(
            f"The backward pass is captured of code that is one graph, and this one breaks{place}: "
            f"{first.reason}. Leave --backward out, or mend the break."
        )
    if not captured.differentiated:
        raise UsageError(
            "There is nothing to differentiate: no result depends on a floating-point input or "
            "parameter; leave --backward out."
        )


def bound_of(callee: Callee, differentiated: tuple[str, ...] = ()) -> BoundFunction:
    """Code ready to be called; tensors whose gradients are wanted become leaves."""
    target = callee.target
    held = dict(held_tensors(target))
    held |= callee.arguments.tensors(list(held))
    for name, tensor in held.items():
        if name in differentiated:
            tensor.requires_grad_()
    buffers: tuple[tuple[torch.nn.Module, str, torch.Tensor], ...] = ()
    if isinstance(target, torch.nn.Module):
        buffers = tuple(
            (owner, name, tensor)
            for owner in target.modules()
            for name, tensor in owner._buffers.items()
            if tensor is not None
        )
    return BoundFunction(
        target=target,
        args=callee.arguments.args,
        kwargs=callee.arguments.kwargs,
        held=held,
        rebuilt=callee.arguments.rebuilt,
        n_parameters=len(held) - len(callee.arguments.tensors()),
        buffers=buffers,
    )


def _specs(captured: Captured) -> dict[str, InputSpec]:
    placeholders = [n for n in captured.graph_module.graph.nodes if n.op == "placeholder"]
    inputs = [t.id for t in captured.graph.tensors if t.role.value == "input"]
    return {
        name: InputSpec(shape=tuple(node.meta["val"].shape), dtype=node.meta["val"].dtype)
        for name, node in zip(inputs, placeholders, strict=True)
        if name not in captured.tangents
    }


def _attribute(target: Any, path: str) -> torch.Tensor:
    """A tensor that a module holds as a plain attribute.

    Raises:
        CaptureError: It does not.
    """
    value = target
    for name in path.split("."):
        value = getattr(value, name, None)
    if not isinstance(value, torch.Tensor):
        raise CaptureError(
            "The code computes with a tensor that is neither an input nor made by torch within "
            "the call, such as a global that it changes, or one from another thread or library; "
            "give it as an input."
        )
    return value


def _source_text(found: Any) -> str | None:
    """The text of a function or class, cut where it is very long."""
    what = found if inspect.isroutine(found) or isinstance(found, type) else type(found)
    try:
        return inspect.getsource(inspect.unwrap(what))[:_MOST_SOURCE]
    except (OSError, TypeError):
        return None
