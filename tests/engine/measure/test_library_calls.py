"""Launches that neither torch's dispatcher nor Inductor makes, and operators of libraries."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from explorer.engine.measure.calls import CallKind, RecordedCall, library_touches
from explorer.engine.measure.library_ops import with_library_ops
from explorer.engine.measure.provenance import CallOrigin
from explorer.engine.measure.recorder import CallLog, observed
from explorer.engine.measure.triton_code import PointerUse
from explorer.engine.prepare import prepare
from explorer.engine.strategies.base import LibraryOps
from tests.engine.measure.test_triton_code import HEAD, TAIL

READ = PointerUse(is_read=True, is_written=False)
WRITTEN = PointerUse(is_read=False, is_written=True)
COPIES = HEAD + (
    "    %value = tt.load %x_ptr : !tt.ptr<bf16>\n    tt.store %y_ptr, %value : !tt.ptr<bf16>\n"
) + TAIL  # fmt: skip


class FakeJit:
    """Stands for a kernel in Triton: it is run with its arguments, and gives what it became."""

    def __init__(self) -> None:
        self.fn = SimpleNamespace(__name__="copy_kernel")
        self.arg_names = ("y_ptr", "x_ptr", "n", "BLOCK")

    def run(self, *args: Any, grid: object, warmup: bool, **kwargs: Any) -> object:
        if not warmup:
            args[0].copy_(kwargs["x_ptr"])
        return SimpleNamespace(asm={"ttir": COPIES})


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> FakeJit:
    module = ModuleType("triton.runtime.jit")
    module.JITFunction = FakeJit  # type: ignore[attr-defined] # a module of the test's own
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", module)
    return FakeJit()


def test_a_kernel_that_triton_launches_is_a_call(kernel: FakeJit) -> None:
    x = torch.ones(64)
    log = CallLog(device_type="cpu", source_files=frozenset())
    with observed(log, is_compiled=False):
        y = torch.empty(64)
        kernel.run(y, grid=(1,), warmup=True, x_ptr=x, n=64, BLOCK=64)
        kernel.run(y, grid=(1,), warmup=False, x_ptr=x, n=64, BLOCK=64)
    [call] = [call for call in log.calls if call.kind is CallKind.LIBRARY]
    assert call.name == "copy_kernel"
    moved = [(touch.argument, touch.is_write, touch.use.n_bytes) for touch in call.touches]
    assert moved == [("x_ptr", False, 256), ("y_ptr", True, 256)]


def test_an_update_in_place_is_not_fresh() -> None:
    x = torch.ones(4)
    both = PointerUse(is_read=True, is_written=True)
    read, write = library_touches(["x_ptr"], [x], [both])
    assert not read.is_write
    assert write.is_write
    assert not write.is_fresh


def test_arguments_that_are_not_understood_are_taken_to_be_read() -> None:
    touches = library_touches(["x", "y", "n"], [torch.ones(4), torch.ones(4), 4], [WRITTEN])
    assert [touch.is_write for touch in touches] == [False, False]


def test_memory_that_holds_nothing_yet_is_written_and_not_read() -> None:
    library = torch.library.Library("explorer_test", "DEF")  # type: ignore[no-untyped-call]
    define: Any = library.define
    implement: Any = library.impl
    define("double(Tensor x, Tensor(a!) out) -> ()")
    implement("double", lambda x, out: None, "CPU")
    x = torch.ones(4)
    log = CallLog(device_type="cpu", source_files=frozenset())
    with observed(log, is_compiled=False):
        y = torch.empty_like(x)
        torch.ops.explorer_test.double(x, y)
        torch.ops.explorer_test.double(x, y)
    first, second = log.calls
    assert [(touch.is_write, touch.is_fresh) for touch in first.touches] == [
        (False, False),
        (True, True),
    ]
    assert [touch.is_write for touch in second.touches] == [False, False, True]


def test_helpers_of_a_library_carry_out_nothing() -> None:
    prepared = prepare("rmsnorm", {"rows": 4, "columns": 8}, torch.device("cpu"))
    log = CallLog(device_type="cpu", source_files=frozenset())
    with observed(log, is_compiled=False):
        torch.ones(4).zero_()
        torch.nn.functional.layer_norm(prepared.inputs["x"], (8,))
    calls = tuple(log.calls)
    unknown = tuple(CallOrigin() for _ in calls)
    told = with_library_ops(calls, unknown, prepared, LibraryOps())
    by_name = {call.name: origin.ops for call, origin in zip(calls, told, strict=True)}
    everything = tuple(op.name for op in prepared.graph.ops)
    assert by_name.pop("aten.native_layer_norm.default") == everything
    assert set(by_name.values()) == {()}


def test_ops_of_a_librarys_kernel_that_are_known_stay() -> None:
    """The sole kernel of a pass may have been given all its ops before."""
    prepared = prepare("rmsnorm", {"rows": 4, "columns": 8}, torch.device("cpu"))
    everything = tuple(op.name for op in prepared.graph.ops)
    call = RecordedCall(kind=CallKind.TRITON, name="triton_norm_kernel", touches=())
    library = LibraryOps(by_kernel=(("norm", ()),))
    for known in (everything, ()):
        [told] = with_library_ops([call], [CallOrigin(ops=known)], prepared, library)
        assert told.ops == everything
