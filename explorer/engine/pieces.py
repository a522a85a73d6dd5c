"""Compiles the pieces of a partition with Inductor, and keeps them by what is in them.

A piece that was compiled before in this process comes back at once, whichever plan it is of, with
what was observed of its compilation. Inductor's state is global: one piece is compiled at a time.
"""

import hashlib
import inspect
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import torch
from torch import fx

from explorer.engine.aten_graph import attribute
from explorer.engine.internals import internal
from explorer.engine.measure.observe_compile import (
    ModuleNotes,
    code_generation_runs,
    observing_compilation,
)
from explorer.engine.partition import Piece, PieceCall

DEFAULT_OPTIONS: Mapping[str, Any] = {
    # Kernels are tuned when first run, not on memory of their own.
    "triton.autotune_at_compile_time": None,
}
"""Inductor's settings as torch.compile has them."""
PLAN_OPTIONS: Mapping[str, Any] = {
    **DEFAULT_OPTIONS,
    # Else a group could become another operator, such as attention as a whole.
    "pattern_matcher": False,
}
"""Inductor's settings for a group of a fusion plan."""

_TORCHS_SETTINGS = attrgetter(
    # Not get_float32_matmul_precision, which raises where a program has set one of these.
    "backends.cuda.matmul.fp32_precision",
    "backends.cudnn.conv.fp32_precision",
    "backends.mkldnn.matmul.fp32_precision",
    "backends.mkldnn.enabled",
    "backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
    "backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
    "utils.deterministic.fill_uninitialized_memory",
)
_MOST_PIECES = 512
_FAKE_TENSORS = "torch._subclasses.fake_tensor:FakeTensorMode"
_NO_FAKE_TENSORS = "torch._subclasses.fake_tensor:unset_fake_temporarily"
_NODE = "\0node "
"""Stands before a node's place, where no argument can have it."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPiece:
    """A piece that runs.

    Attributes:
        call: Takes the values of the piece's inputs in a list, which it may empty.
        notes: What was seen of its compilation, None where nothing could be.
        compile_s: Seconds it took to have it, this time.
        from_cache: Whether it was there already.
    """

    call: PieceCall
    notes: ModuleNotes | None
    compile_s: float
    from_cache: bool


class PieceCache:
    """Compiled pieces by content; the one that was not asked for longest goes first."""

    def __init__(self, most: int = _MOST_PIECES) -> None:
        """Keep up to so many pieces."""
        self._most = most
        self._pieces: OrderedDict[str, CompiledPiece] = OrderedDict()
        self._lock = threading.RLock()

    def compiled(self, piece: Piece, options: Mapping[str, Any] = PLAN_OPTIONS) -> CompiledPiece:
        """The piece, compiled now or before.

        May be called inside a compiler that torch.compile calls.

        Args:
            piece: A group of a graph. Its inputs are taken to be as its placeholders say.
            options: Inductor's settings that are not to be as they are.
        """
        started_s = time.perf_counter()
        with self._lock:
            key = content_key(piece.module, options)
            held = self._pieces.get(key)
            is_new = held is None
            if held is None:
                call, notes = _compile(piece.module, options)
                held = CompiledPiece(call=call, notes=notes, compile_s=0.0, from_cache=False)
                self._pieces[key] = held
                while len(self._pieces) > self._most:
                    self._pieces.popitem(last=False)
            self._pieces.move_to_end(key)
        return replace(held, compile_s=time.perf_counter() - started_s, from_cache=not is_new)

    def __len__(self) -> int:
        """How many pieces are kept."""
        return len(self._pieces)

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._pieces.clear()


PIECES = PieceCache()
"""The pieces of this process."""


def content_key(module: fx.GraphModule, options: Mapping[str, Any]) -> str:
    """What a compiled piece depends on, as a hash: the graph, its inputs, settings, torch's too."""
    digest = hashlib.sha256()
    place = {node: i for i, node in enumerate(module.graph.nodes)}
    for node in module.graph.nodes:
        digest.update(_described(module, node, place).encode())
    digest.update(repr(sorted(options.items())).encode())
    digest.update(_settings_of_torch())
    return digest.hexdigest()


def _described(module: fx.GraphModule, node: fx.Node, place: Mapping[fx.Node, int]) -> str:
    """A node in words that leave nothing out and name no other node but by its place."""
    arguments = fx.node.map_arg((node.args, node.kwargs), lambda n: f"{_NODE}{place[n]}")
    target = str(node.target) if node.op != "placeholder" else ""
    words = [node.op, target, repr(arguments)]
    if node.op == "placeholder":
        words.append(_shape_of(node.meta.get("val")))
    if node.op == "get_attr":
        words.append(_code_of(attribute(module, node.target)))
    return "\n".join(words)


def _shape_of(value: object) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    return repr((tuple(value.shape), value.stride(), value.dtype, value.device))


def _code_of(value: object) -> str:
    """The content of a graph inside the graph."""
    if isinstance(value, fx.GraphModule):
        return value.print_readable(print_output=False)
    raise TypeError(f"a piece cannot hold {type(value).__name__}")


def _settings_of_torch() -> bytes:
    from torch._inductor import config

    settings = (
        # What an operator makes of whole numbers, or of a number alone, is of this type.
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        *_TORCHS_SETTINGS(torch),
    )
    # What torch's own cache of graphs goes by; get_hash also tells whether compiling is watched.
    inductor = sorted(config.save_config_portable().items())
    return repr((inductor, settings)).encode()


def _compile(
    module: fx.GraphModule, options: Mapping[str, Any]
) -> tuple[PieceCall, ModuleNotes | None]:
    # First, since importing it needs what is switched off below.
    import torch._inductor

    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(internal(_NO_FAKE_TENSORS)())
        inputs = _example_inputs(module)
        observation = stack.enter_context(observing_compilation())
        stack.enter_context(code_generation_runs())
        stack.enter_context(_quiet("torch._inductor.standalone_compile"))
        artifact = torch._inductor.standalone_compile(
            module,
            inputs,
            dynamic_shapes="from_example_inputs",
            options={"config_patches": dict(options)},
        )
    notes = list(observation.modules.values())
    return _boxed(artifact), notes[0] if len(notes) == 1 else None


def _example_inputs(module: fx.GraphModule) -> list[Any]:
    """What the piece will be given, without any memory."""
    values = [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]
    with internal(_FAKE_TENSORS)():
        return [
            torch.empty_strided(
                tuple(value.shape), value.stride(), dtype=value.dtype, device=value.device
            )
            if isinstance(value, torch.Tensor)
            else value
            for value in values
        ]


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Keep a logger's warnings back: here, that what no cache holds cannot be saved either."""
    log = logging.getLogger(logger)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _boxed(artifact: Any) -> PieceCall:
    """The compiled code in the form that lets go of each input as soon as it is done with it.

    It is the function that torch wraps last in one that takes the inputs one by one.
    """
    wrapper = getattr(artifact, "_compiled_fn", None)
    while wrapper is not None:
        inner: Any = getattr(wrapper, "__wrapped__", None)
        is_boxed = inner is not None and getattr(inner, "_boxed_call", False)
        if is_boxed and _takes_each(wrapper) and not _takes_each(inner):
            boxed: PieceCall = inner
            return boxed
        wrapper = inner
    _logger.info("compiled code holds its inputs until it is done")

    def call(values: list[Any]) -> Any:
        return artifact(*values)

    return call


def _takes_each(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is None or bool(code.co_flags & inspect.CO_VARARGS)
