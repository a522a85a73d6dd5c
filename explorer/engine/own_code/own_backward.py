"""Finds the ``torch.autograd.Function``s of own code: backward passes that somebody wrote.

Export sees through their forward pass, so that the captured backward pass is autograd's own.
"""

import logging
from typing import Any

import torch

from explorer.engine.bound import flat_tensors
from explorer.engine.own_code.arguments import Arguments

_logger = logging.getLogger(__name__)


def own_backward_notes(target: Any, arguments: Arguments) -> tuple[str, ...]:
    """What a person should know of code that has backward passes of its own.

    Args:
        target: A function, or a module with its parameters.
        arguments: Of a call; both on tensors without memory.
    """
    names = _written_functions(target, arguments)
    if not names:
        return ()
    return (
        f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'} a backward pass of "
        f"{'its' if len(names) == 1 else 'their'} own (torch.autograd.Function), which eager and "
        "compile run; the graph, and plans with it, take autograd's of the forward pass instead, "
        "so that launches of the other have no op.",
    )


def _written_functions(target: Any, arguments: Arguments) -> tuple[str, ...]:
    """The names of the classes, in the order of the backward pass; none where they cannot tell."""
    trained = arguments.mapped(
        lambda tensor: tensor.detach().requires_grad_(tensor.is_floating_point())
    )
    mode = next(
        (mode for t in trained.tensors().values() if (mode := getattr(t, "fake_mode", None))), None
    )
    if mode is None:
        return ()
    try:
        with mode, torch.enable_grad():
            results = flat_tensors(target(*trained.args, **trained.kwargs))
    except Exception:
        _logger.info("own code does not run under autograd without memory", exc_info=True)
        return ()
    waiting = [result.grad_fn for result in results if result.grad_fn is not None]
    seen, names = set[Any](), dict[str, None]()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            names[type(node).__name__.removesuffix("Backward")] = None
        waiting += [before for before, _ in node.next_functions if before is not None]
    return tuple(names)
