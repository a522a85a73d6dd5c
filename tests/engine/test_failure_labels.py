"""A sweep's short words for a failure fit the sentences that the engine and the worker write."""

from __future__ import annotations

import torch

from explorer.engine.faults import sentence_for
from explorer.engine.fitting import Room, refuse
from explorer.engine.prepare import capture_chain
from explorer.engine.strategies import find_strategy
from explorer.model.param_sweep_words import FAILED, OUT_OF_MEMORY, failure_label
from explorer.worker.client import exit_sentence
from tests.fixtures_param_sweep import failed, k_sweep
from tests.fixtures_runs import CPU


def label(sentence: str | None) -> str:
    assert sentence is not None
    return failure_label(failed(k_sweep((1,))[0], sentence))


def test_what_ran_out_of_memory_is_called_so() -> None:
    assert label(sentence_for(torch.OutOfMemoryError("CUDA"), "eager", "rows")) == OUT_OF_MEMORY
    assert label(sentence_for(MemoryError(), "eager", None)) == OUT_OF_MEMORY
    assert label(exit_sentence(-9, "")) == OUT_OF_MEMORY


def test_what_was_refused_for_want_of_room_is_called_so() -> None:
    chosen = capture_chain("elementwise", {"elements": 4096, "k": 2}, torch.device("cpu"))
    room = Room(device=CPU, free_bytes=1000)

    assert label(refuse(chosen, find_strategy("eager"), room)) == OUT_OF_MEMORY


def test_other_faults_are_failures() -> None:
    assert label(sentence_for(ValueError("shape"), "eager", "rows")) == FAILED
    assert label(exit_sentence(-11, "")) == FAILED
