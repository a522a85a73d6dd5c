"""Kernel Explorer: where do the bytes go when operators are fused?

From Python: :func:`measure` measures a function or module, :func:`backend` applies a fusion plan in
anyone's program, and :func:`plan_ops` tells by which names a plan can call a function's ops. They
load torch when they are called, not before.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from explorer.model.run import Run

__version__ = "0.1.0"
__all__ = ["Backend", "__version__", "backend", "measure", "plan_ops"]


class Backend(Protocol):
    """What :func:`backend` returns: something that ``torch.compile`` takes."""

    def __call__(self, module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """Compile a graph; torch calls it."""

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with the plan applied, compiled anew for other sizes.

        The same as ``torch.compile`` with this backend and ``dynamic=False``, but that operators
        stay whole which Dynamo otherwise takes apart, such as ``addcmul_``.
        """

    def describe(self) -> str:
        """The graphs compiled so far, a line an op, with the names that a plan calls them by."""


def backend(plan: str, *, backward: str = "all", names: Mapping[str, str] | None = None) -> Backend:
    """Make a backend of ``torch.compile`` that applies a fusion plan.

    Each group of the plan becomes a piece of work of its own for Inductor, which cannot fuse
    across pieces. Ops are named by their ATen operators (``aten._softmax.default`` is ``softmax``,
    and ``_softmax`` is read too), repeats numbered from 2 (``mul``, ``mul2``) in the graph's order;
    :func:`plan_ops` lists them. ``+`` stands within a group and ``|`` between groups; ops that are
    not named stay alone.

        >>> import torch, explorer
        >>> def scores(x, mask):
        ...     return torch.softmax(x * 0.125 + mask, -1)
        >>> fused = torch.compile(scores, backend=explorer.backend("mul+add|softmax"))
        >>> x, mask = torch.randn(4, 8, 8), torch.zeros(8, 8)
        >>> torch.allclose(fused(x, mask), scores(x, mask), atol=1e-6)
        True

    Random ops draw the compiler's numbers, as under ``torch.compile``: other ones than eager's, the
    same again after ``torch.manual_seed``.

    A plan fits the sizes that it is compiled for: pass ``dynamic=False`` to ``torch.compile`` if
    sizes change, which compiles anew for each; the backend's own ``compile(function)`` does.

    Args:
        plan: Of every forward graph: a text, ``each`` (one op a kernel) or ``all`` (all in one).
        backward: Alike, of every backward graph.
        names: More names for ops, with the ATen name of each: ``{"scale": "mul"}``.

    Raises:
        explorer.model.errors.UsageError: A plan cannot be read. Raised later, when a graph is
            compiled, if the graph lacks an op that is named, or the plan is not legal there.
    """
    made: Backend = importlib.import_module("explorer.engine.backend").PlanBackend(
        plan, backward=backward, names=names or {}
    )
    return made


def plan_ops(function: Callable[..., Any], *inputs: Any) -> str:
    """List the ops of a function by the names that a plan calls them by, a graph after the other.

    The function runs once, on these inputs, without being compiled; if its results need a gradient
    the backward graph is listed as well.

    Args:
        function: What would be given to ``torch.compile``.
        *inputs: For one call of it.
    """
    listed: str = importlib.import_module("explorer.engine.backend").plan_ops(function, inputs)
    return listed


def measure(
    fn: Callable[..., Any],
    inputs: Any,
    strategies: Sequence[str] = ("eager", "compile"),
    *,
    backward: bool = False,
    device: str | None = None,
    seed: int = 0,
    names: Sequence[str] | None = None,
    timing_s: float = 1.0,
) -> "list[Run]":
    """Measure a function or module in this process.

    The runs are those of ``kernel-explorer run``: launches, bytes, times, memory, accuracy;
    ``explorer.recording.save_recording`` saves them for the window. A module keeps its parameters,
    its mode and its dtype; buffers and inputs are copied, since calls may change them.

    Args:
        fn: A function, or an instance of ``torch.nn.Module``.
        inputs: A tensor, a tuple of arguments, a dict of arguments by name, or both as
            ``(args, kwargs)``.
        strategies: As on the command line, in the order wanted.
        backward: Forward and backward rather than forward alone.
        device: Where to run; where the tensors are if left out.
        seed: Of random ops, and of the gradients that a backward pass takes.
        names: What the arguments by place are called; as the function does if left out.
        timing_s: Seconds of timing a strategy.

    Returns:
        One run a strategy, in their order; one that failed says so in ``error``.

    Raises:
        explorer.model.errors.UsageError: A strategy does not exist or does not apply.
        explorer.model.errors.ExplorerError: The code raised an error; the sentence names its line.
    """
    runs: list[Run] = importlib.import_module("explorer.engine.measure_here").measure(
        fn,
        inputs,
        strategies,
        backward=backward,
        device=device,
        seed=seed,
        names=names,
        timing_s=timing_s,
    )
    return runs
