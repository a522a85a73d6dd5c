"""``torch.compile`` in its modes."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

import torch

from explorer.engine.bound import BoundFunction
from explorer.engine.graph_breaks import is_users, reason_in_words, watching_breaks
from explorer.engine.internals import InternalMovedError, internal
from explorer.engine.measure.observe_compile import code_generation_runs
from explorer.engine.prepared import ChainFunction, Prepared, Returned
from explorer.engine.strategies.base import Built, DeviceRefusal, PeakFamily, PeakRule, Strategy
from explorer.engine.toolchain import compile_refusal
from explorer.model.opgraph import GraphBreak
from explorer.model.run import Scalar

_WITH_GRAPHS = ("reduce-overhead", "max-autotune")
_TITLES = {
    None: "torch.compile",
    "reduce-overhead": "torch.compile, reduce-overhead",
    "max-autotune": "torch.compile, max-autotune",
    "max-autotune-no-cudagraphs": "torch.compile, max-autotune without CUDA graphs",
}


def _refusal(mode: str | None) -> DeviceRefusal:
    def refusal(device: torch.device) -> str | None:
        if mode == "reduce-overhead" and device.type != "cuda":
            return (
                "compile:reduce-overhead is compile with CUDA graphs, which a CPU does not have; "
                "use compile."
            )
        return compile_refusal(device)

    return refusal


def _peak(mode: str | None) -> PeakRule:
    def rule(_parameters: Mapping[str, Scalar], device: torch.device) -> PeakFamily:
        has_graph = mode in _WITH_GRAPHS and device.type == "cuda"
        return PeakFamily.COMPILED_GRAPH if has_graph else PeakFamily.COMPILED

    return rule


def build_compiled(prepared: Prepared, function: ChainFunction, mode: str | None = None) -> Built:
    """Compile a chain and call it.

    Args:
        prepared: The chain with its inputs.
        function: The chain as it is to be compiled.
        mode: Of ``torch.compile``.
    """
    uses_graph = mode in _WITH_GRAPHS and prepared.device.type == "cuda"

    # A function of its own: Dynamo names what it compiles by the code object.
    def chain(*tensors: torch.Tensor) -> Returned:
        return function(*tensors)

    torch.compiler.reset()
    _break_counts().clear()

    new_step: Callable[[], None] = torch.compiler.cudagraph_mark_step_begin

    def call() -> Returned:
        if uses_graph:
            new_step()
        return run()

    # Bound code is compiled as its author would, without a function around it.
    code = function.target if isinstance(function, BoundFunction) else chain
    with code_generation_runs(), _breaks_of(prepared) as breaks:
        run = prepared.caller(torch.compile(code, dynamic=False, mode=mode))
        call()
    if uses_graph:
        # The first call warmed up, the second records the graph, later ones replay it.
        call()
        call()
    return Built(
        call=call,
        notes=_notes(mode, prepared.device),
        give_back=_forget,
        graph_breaks=tuple(breaks) or _graph_breaks(),
        uses_graph=uses_graph,
    )


def _builder(mode: str | None) -> Callable[[Prepared], Built]:
    return lambda prepared: build_compiled(prepared, prepared.function, mode)


def _forget() -> None:
    """Drop what was compiled, and the CUDA graphs with their memory."""
    torch.compiler.reset()
    if torch.cuda.is_available():
        # Some releases leave them to the garbage collector, and so does one without the function.
        with contextlib.suppress(InternalMovedError):
            internal("torch._inductor.cudagraph_trees:reset_cudagraph_trees")()


def _notes(mode: str | None, device: torch.device) -> tuple[str, ...]:
    if device.type == "cuda":
        return ()
    if mode == "max-autotune":
        return ("There are no CUDA graphs on a CPU: max-autotune only tries more kernels here.",)
    return ()


@contextlib.contextmanager
def _breaks_of(prepared: Prepared) -> Iterator[list[GraphBreak]]:
    """The graph breaks of what is compiled meanwhile, with their places, of anybody's own code."""
    if not isinstance(prepared.function, BoundFunction):
        yield []
        return
    with watching_breaks(is_users) as breaks:
        yield breaks


def _graph_breaks() -> tuple[GraphBreak, ...]:
    return tuple(
        GraphBreak(place="", reason=reason_in_words(str(reason)), raw=str(reason))
        for reason in _break_counts()
    )


def _break_counts() -> dict[str, int]:
    """How often the compiler gave up a graph, by reason; empty where torch does not tell."""
    try:
        counts: dict[str, int] = internal("torch._dynamo.utils:counters")["graph_break"]
    except InternalMovedError:
        return {}
    return counts


ENTRIES = tuple(
    Strategy(
        name="compile",
        option=mode,
        title=title,
        device_refusal=_refusal(mode),
        build=_builder(mode),
        peak=_peak(mode),
        compiles=True,
    )
    for mode, title in _TITLES.items()
)
