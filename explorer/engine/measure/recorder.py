"""Sees every operator and generated kernel that a call launches, on a CPU and on a GPU.

Three observers use it: one notes what each call does to memory, one times it, one labels it for
the profiler. Dynamo does not run compiled code inside a dispatch mode, so the mode is entered below
it, where the compiled graph is called. There CUDA graphs are left out as well: the code that was
captured runs as it stands, which is what a graph replays.
"""

import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Protocol
from unittest.mock import patch

import torch
from torch.profiler import record_function
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.engine import backward_pass
from explorer.engine.internals import internal, patch_point
from explorer.engine.measure.autograd_in_place import InPlaceForms
from explorer.engine.measure.calls import (
    CallKind,
    RecordedCall,
    Touch,
    aten_touches,
    computes,
    cpp_touches,
    library_touches,
    triton_touches,
)
from explorer.engine.measure.generated import GeneratedKernel, read_module
from explorer.engine.measure.triton_code import pointer_uses
from explorer.engine.op_facts import allocates

LABEL = "launch-of-call-"
"""Label of a call in a trace, followed by the call's index."""

_MOST_FRAMES = 80
_COMPILED_GRAPH = "torch._inductor.output_code:CompiledFxGraph.__call__"
_TRITON_KERNEL = "torch._inductor.runtime.triton_heuristics:CachingAutotuner.run"
_TRITON = "triton.runtime.jit"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """A call that is about to happen; ``code`` is the operator or the kernel.

    ``makes_value`` tells that what it updates in place is a value of its own from then on.
    """

    kind: CallKind
    name: str
    code: Any
    arguments: Sequence[Any]
    keywords: Mapping[str, Any]
    makes_value: bool = False


class Observer(Protocol):
    """Something that stands around each call."""

    def around(self, call: PendingCall, run: Callable[[], Any]) -> Any:
        """Run the call and return its result."""


@dataclass(slots=True)
class CallLog:
    """Notes what each call does to memory.

    Attributes:
        device_type: Where tensors count.
        source_files: Those with the chain's code.
        calls: What was seen, in order.
        allocated: Memory taken by generated code since the last call.
        blank: Memory that torch's operators took and that nothing was written to yet.
        n_graphs: Compiled graphs that have begun to run.
    """

    device_type: str
    source_files: frozenset[str]
    calls: list[RecordedCall] = field(default_factory=list)
    allocated: set[int] = field(default_factory=set)
    blank: set[int] = field(default_factory=set)
    n_graphs: int = 0

    def around(self, call: PendingCall, run: Callable[[], Any]) -> Any:
        """Run the call, then describe it: nothing of it is held alive."""
        place = _place(self.source_files)
        result = run()
        touches = _without_blank(_touches(call, result, self.device_type), self.blank)
        self.blank -= {touch.use.storage for touch in touches if touch.is_write}
        if call.makes_value:
            touches = tuple(replace(touch, is_fresh=touch.is_write) for touch in touches)
        if place.module is not None and place.module_line is not None:
            touches = _with_variables(call, touches, place.module, place.module_line)
        self.calls.append(
            RecordedCall(
                kind=call.kind,
                name=call.name,
                touches=touches,
                source_line=place.source_line,
                source_file=place.source_file,
                module=place.module,
                module_key=place.module_key,
                module_line=place.module_line,
                spills=_spills(call),
                allocated=frozenset(self.allocated),
                graph=self.n_graphs - 1 if self.n_graphs else None,
                is_backward=backward_pass.is_running(),
            )
        )
        self.allocated.clear()
        return result


@dataclass(frozen=True, slots=True)
class TimedCall:
    """A call with its times on the host's clock."""

    name: str
    start_ns: int
    duration_ns: int


@dataclass(slots=True)
class CallTimer:
    """Times each call on a CPU, where a call has computed its result when it returns."""

    calls: list[TimedCall] = field(default_factory=list)

    def around(self, call: PendingCall, run: Callable[[], Any]) -> Any:
        """Run the call between two looks at the clock."""
        start_ns = time.perf_counter_ns()
        result = run()
        duration_ns = time.perf_counter_ns() - start_ns
        self.calls.append(TimedCall(call.name, start_ns, duration_ns))
        return result


@dataclass(slots=True)
class CallLabels:
    """Puts a label that the profiler sees around each call."""

    names: list[str] = field(default_factory=list)

    def around(self, call: PendingCall, run: Callable[[], Any]) -> Any:
        """Run the call inside a range named after its index."""
        label = f"{LABEL}{len(self.names)}"
        self.names.append(call.name)
        with record_function(label):
            return run()


class _SeesOperators(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no hints
    def __init__(self, observer: Observer) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # nor here
        self._observer = observer
        self._forms = InPlaceForms()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        keywords = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload) or not computes(func):
            result = func(*args, **keywords)
            if isinstance(self._observer, CallLog) and allocates(func):
                self._observer.blank.add(result.untyped_storage().data_ptr())
            return result
        operator = self._forms.of(func, args)
        call = PendingCall(
            kind=CallKind.ATEN,
            name=str(operator),
            code=operator,
            arguments=args,
            keywords=keywords,
            makes_value=operator is not func,
        )
        result = self._observer.around(call, lambda: operator(*args, **keywords))
        self._forms.note(operator, result)
        return result


class _SeesAllOperators(_SeesOperators):  # type: ignore[no-untyped-call] # nor here
    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let code that was compiled run as such, rather than as eager under another mode."""
        return True


@contextmanager
def observed(observer: Observer, *, is_compiled: bool, has_breaks: bool = False) -> Iterator[None]:
    """Let an observer see the calls inside the ``with`` block.

    Args:
        observer: Stands around each call.
        is_compiled: Whether compiled graphs are called; operators are then seen inside them only.
        has_breaks: Whether operators run between these graphs, which are to be seen too; a torch
            that cannot show them leaves them out.
    """
    sees_all = has_breaks and hasattr(TorchDispatchMode, "ignore_compile_internals")
    mode = _SeesAllOperators(observer) if sees_all else _SeesOperators(observer)
    with ExitStack() as stack:
        # Else a GPU's backward pass runs in a thread whose frames do not lead back to the code.
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        if is_compiled:
            log = observer if isinstance(observer, CallLog) else None
            stack.enter_context(_compiled_graphs(None if sees_all else mode, log))
            stack.enter_context(_triton_kernels(observer))
            stack.enter_context(_cpp_functions(observer))
            if log is not None:
                stack.enter_context(_allocations(log))
        if sees_all or not is_compiled:
            stack.enter_context(mode)
        stack.enter_context(_own_triton_kernels(observer))
        yield


@contextmanager
def without_cuda_graphs() -> Iterator[None]:
    """Run compiled graphs as generated, launch by launch, where they would replay a CUDA graph."""
    with _compiled_graphs(None):
        yield


def calls_compiled_graph(call: Callable[[], object]) -> bool:
    """Whether a call runs a graph that Inductor compiled.

    Raises:
        InternalMovedError: torch does not let one see.
    """
    if "torch._inductor.output_code" not in sys.modules:
        return False
    owner, name, original = patch_point(_COMPILED_GRAPH)
    seen = []

    def note(graph: Any, inputs: Any) -> Any:
        seen.append(graph)
        return original(graph, inputs)

    with patch.object(owner, name, note):
        call()
    return bool(seen)


def generated_kernels() -> Iterator[tuple[ModuleType, GeneratedKernel]]:
    """Every kernel of the generated modules that are loaded."""
    for module in _generated_modules():
        if module.__file__:
            for kernel in read_module(module.__file__).kernels.values():
                yield module, kernel


def _generated_modules() -> list[ModuleType]:
    if "torch._inductor.codecache" not in sys.modules:
        return []
    return list(internal("torch._inductor.codecache:PyCodeCache.modules"))


@contextmanager
def _compiled_graphs(mode: _SeesOperators | None, log: CallLog | None = None) -> Iterator[None]:
    owner, name, original = patch_point(_COMPILED_GRAPH)

    def call(graph: Any, inputs: Any) -> Any:
        if log is not None:
            log.n_graphs += 1
        run = _without_graph(graph) or functools.partial(original, graph)
        if mode is None:
            return run(inputs)
        with mode:
            return run(inputs)

    with patch.object(owner, name, call):
        yield


def _without_graph(graph: Any) -> Callable[[Any], Any] | None:
    """What a compiled graph captures in a CUDA graph, as a plain callable; None if it does not."""
    if graph.cudagraph_info is None or "cuda" not in graph.device_types:
        return None
    module = next((m for m in _generated_modules() if m.key == graph.cache_key), None)
    if module is None:
        return None
    if not hasattr(module, "Runner"):
        plain: Callable[[Any], Any] = module.call
        return plain
    # The runner's own parts have been replaced by captured ones; the module still has the plain.
    parts = [name for name in vars(module) if name.startswith("partition_")]
    parts.sort(key=lambda name: int(name.removeprefix("partition_")))
    runner = module.Runner(partitions=[getattr(module, name) for name in parts])
    ungraphed: Callable[[Any], Any] = runner.call
    return ungraphed


@contextmanager
def _triton_kernels(observer: Observer) -> Iterator[None]:
    module, _, _ = _TRITON_KERNEL.partition(":")
    if module not in sys.modules:
        yield
        return
    owner, attribute, original = patch_point(_TRITON_KERNEL)

    def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        name = kernel.inductor_meta.get("kernel_name") or kernel.fn.__name__
        call = PendingCall(
            kind=CallKind.TRITON, name=name, code=kernel, arguments=args, keywords=kwargs
        )
        return observer.around(call, lambda: original(kernel, *args, **kwargs))

    with patch.object(owner, attribute, run):
        yield


@contextmanager
def _own_triton_kernels(observer: Observer) -> Iterator[None]:
    """See the kernels that somebody wrote in Triton, such as a library's."""
    owner: Any = getattr(sys.modules.get(_TRITON), "JITFunction", None)
    if not hasattr(owner, "run"):
        yield
        return
    original = owner.run

    def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("warmup"):
            return original(kernel, *args, **kwargs)
        names = list(kernel.arg_names)
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        call = PendingCall(
            kind=CallKind.LIBRARY,
            name=str(kernel.fn.__name__),
            code=kernel,
            arguments=[given.get(name) for name in names],
            keywords={},
        )
        return observer.around(call, lambda: original(kernel, *args, **kwargs))

    with patch.object(owner, "run", run):
        yield


@contextmanager
def _cpp_functions(observer: Observer) -> Iterator[None]:
    with ExitStack() as stack:
        for module, kernel in generated_kernels():
            function = getattr(module, kernel.name, None)
            if kernel.language == "cpp" and callable(function):
                wrapped = _wrap(function, kernel, observer)
                stack.enter_context(patch.object(module, kernel.name, wrapped))
        yield


@contextmanager
def _allocations(log: CallLog) -> Iterator[None]:
    """Note the memory that generated code takes: it comes with what was freed there before."""

    def noting(allocate: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def run(*args: Any, **kwargs: Any) -> torch.Tensor:
            tensor = allocate(*args, **kwargs)
            log.allocated.add(tensor.untyped_storage().data_ptr())
            return tensor

        return run

    with ExitStack() as stack:
        for module in _generated_modules():
            for name, value in list(vars(module).items()):
                if name.startswith("empty_strided_") and callable(value):
                    stack.enter_context(patch.object(module, name, noting(value)))
        yield


def _wrap(
    function: Callable[..., Any], kernel: GeneratedKernel, observer: Observer
) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        call = PendingCall(
            kind=CallKind.CPP, name=kernel.name, code=kernel, arguments=args, keywords=kwargs
        )
        return observer.around(call, lambda: function(*args, **kwargs))

    return run


def _touches(call: PendingCall, result: Any, device_type: str) -> tuple[Touch, ...]:
    match call.kind:
        case CallKind.ATEN:
            return aten_touches(call.code, call.arguments, call.keywords, result, device_type)
        case CallKind.TRITON:
            names = list(call.code.fn.arg_names)
            return triton_touches(names, call.arguments, call.code.mutated_arg_names)
        case CallKind.CPP:
            return cpp_touches(call.code.arguments, call.arguments)
        case CallKind.LIBRARY:
            ttir = (getattr(result, "asm", None) or {}).get("ttir", "")
            return library_touches(call.code.arg_names, call.arguments, pointer_uses(str(ttir)))


def _without_blank(touches: tuple[Touch, ...], blank: set[int]) -> tuple[Touch, ...]:
    """What was never written to is not read, though a kernel takes it to write to it."""
    if not blank:
        return touches
    return tuple(
        replace(touch, is_fresh=touch.is_write) if touch.use.storage in blank else touch
        for touch in touches
        if touch.is_write or touch.use.storage not in blank
    )


def _with_variables(
    call: PendingCall, touches: tuple[Touch, ...], module: str, line: int
) -> tuple[Touch, ...]:
    """Add the generated code's names of the arguments of a generated kernel."""
    variables = read_module(module).argument_names(line)
    if call.kind is CallKind.ATEN:
        return touches
    if call.kind is CallKind.TRITON:
        names = list(call.code.fn.arg_names)
    else:
        names = [pointer.name if pointer else "" for pointer in call.code.arguments]
    by_argument = dict(zip(names, variables, strict=False))
    return tuple(
        replace(touch, variable=by_argument.get(touch.argument or "")) for touch in touches
    )


def _spills(call: PendingCall) -> int | None:
    launchers = getattr(call.code, "launchers", None) if call.kind is CallKind.TRITON else None
    if not launchers or len(launchers) != 1:
        return None
    spills = getattr(launchers[0], "n_spills", None)
    return spills if isinstance(spills, int) else None


@dataclass(slots=True)
class _Place:
    source_line: int | None = None
    source_file: str | None = None
    module: str | None = None
    module_key: str | None = None
    module_line: int | None = None


def _place(source_files: frozenset[str]) -> _Place:
    """Where the call comes from: the nearest frame of the chain or of a generated module."""
    modules = {module.__file__: module for module in _generated_modules()}
    frame = inspect.currentframe()
    for _ in range(_MOST_FRAMES):
        frame = frame.f_back if frame is not None else None
        if frame is None:
            break
        filename = frame.f_code.co_filename
        if filename in modules:
            key = getattr(modules[filename], "key", None)
            return _Place(module=filename, module_key=key, module_line=frame.f_lineno)
        if filename in source_files:
            return _Place(source_line=frame.f_lineno, source_file=filename)
    return _Place()
