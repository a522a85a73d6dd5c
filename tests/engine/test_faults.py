"""What a strategy can raise, as a sentence."""

import pytest
import torch

from explorer.engine.faults import first_line, is_device_lost, is_out_of_memory, sentence_for
from explorer.model.errors import UsageError


class AcceleratorError(RuntimeError):
    """As torch names it."""


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_out_of_memory_names_what_to_make_smaller(error: Exception) -> None:
    assert is_out_of_memory(error)
    assert not is_device_lost(error)
    sentence = sentence_for(error, "compile", "seq_len")
    assert sentence == "compile ran out of memory; choose a smaller seq_len or batch."


@pytest.mark.parametrize(
    "error",
    [
        AcceleratorError("unknown"),
        RuntimeError("CUDA error: device-side assert triggered\nmore"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
    ],
    ids=str,
)
def test_a_fault_on_the_device_asks_for_a_new_worker(error: Exception) -> None:
    assert is_device_lost(error)
    sentence = sentence_for(error, "eager", "seq_len")
    assert "faulted on the device" in sentence
    assert "new worker" in sentence
    assert "\n" not in sentence


def test_what_the_compiler_raises_is_told_as_such() -> None:
    from torch._inductor.exc import CppCompileError

    error = CppCompileError(["g++"], "no such file")
    assert "could not be compiled" in sentence_for(error, "compile", "seq_len")


def test_anything_else_keeps_its_kind_and_first_line() -> None:
    assert sentence_for(ValueError("bad shape.\nand more"), "sdpa", "n") == (
        "sdpa was stopped by ValueError: bad shape."
    )
    assert sentence_for(KeyError(), "sdpa", "n") == "sdpa was stopped by KeyError: KeyError."
    assert sentence_for(UsageError("Say so."), "sdpa", "n") == "Say so."


def test_of_a_very_long_line_the_first_sentence_is_told() -> None:
    many = f"Could not run 'aten::t'. This could be because of: {'CPU, ' * 100}"
    assert first_line(RuntimeError(many)) == "Could not run 'aten::t'"
    assert len(first_line(RuntimeError("x" * 1000))) < 310
