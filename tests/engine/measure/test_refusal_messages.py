"""Every message of the fusion log that is known, and the log as it was afterwards."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from explorer.engine.internals import internal
from explorer.engine.measure.fusion_log import FUSION_LOG, listening
from explorer.engine.measure.refusal_messages import UNKNOWN, meaning_of, read_line
from explorer.model.run import RefusalReason

if TYPE_CHECKING:
    import logging

R = RefusalReason
MESSAGES = {
    "numel/rnumel mismatch (reduce) (8, 1), (51200, 8)": R.OTHER_AXIS,
    "numel/rnumel mismatch (non-reduce) (8, 16), (1, 1)": R.OTHER_SIZE,
    "numel/rnumel mismatch prologue mismatch (8, 16), (1, 1)": R.OTHER_SIZE,
    "nodes numel incompatibility": R.OTHER_SIZE,
    "nodes numel/rnumel incompatibility": R.OTHER_AXIS,
    "tiling mismatch ({'x': 8}, {'x': 4, 'y': 2}, {'x': 8})": R.OTHER_AXIS,
    "invalid tiling for reduction": R.OTHER_AXIS,
    "invalid loop order and tiling for native matmul": R.OTHER_AXIS,
    "memory deps did not match": R.OTHER_AXIS,
    "no shared data due to indexing mismatch": R.OTHER_AXIS,
    "node1 and node2 uses different buf layouts": R.OTHER_AXIS,
    "candidate producer is a reduction, foreach ops cannot be fused with reductions currently": (
        R.OTHER_AXIS
    ),
    "candidate consumer is a reduction, foreach ops cannot be fused with reductions currently": (
        R.OTHER_AXIS
    ),
    "foreach do not have same length": R.OTHER_SIZE,
    "device mismatch (cuda:0 vs cpu)": R.OTHER_SIZE,
    "buf1's size: [4, 8] differs from buf0's size: [4, 4]": R.OTHER_SIZE,
    "Split scan cannot fuse with reductions": R.GRID_SYNC,
    "exceeds max fusion": R.TOO_LARGE,
    "Fusion will increase peak memory": R.TOO_LARGE,
    "Nodes are too far away. Fusing them may increase peak memory.": R.TOO_LARGE,
    "fusion_prevent_too_many_reads_and_writes": R.TOO_LARGE,
    "register spilling of the first kernel": R.TOO_LARGE,
    "register spilling of the second kernel": R.TOO_LARGE,
    "register spilling of the fused kernel": R.TOO_LARGE,
    "no shared data": R.NOT_WORTH_IT,
    "score_fusion_memory_threshold": R.NOT_WORTH_IT,
    "prologue fusion will not increase amount of bytes read in kernel": R.NOT_WORTH_IT,
    "prologue fusion will not increase attempt to fuse in padding bc it increases unaligned "
    "reads": R.NOT_WORTH_IT,
    "prologue fusion that must be upcast to fp32 not profitable for low precision templates": (
        R.NOT_WORTH_IT
    ),
    "template epilogue not satisfied": R.MATMUL,
    "multi-output template epilogue requires ComputedBuffer": R.MATMUL,
    "prologue fusion turned off": R.MATMUL,
    "prologue fusion only supported for TritonTemplates": R.MATMUL,
    "prologue fusion only supported for pointwise nodes": R.MATMUL,
    "prologue fusion not implemented for kernel for these inputs": R.MATMUL,
    "template has no allowed prologue inputs": R.MATMUL,
    "template prologue can only fuse functional pointwise nodes": R.MATMUL,
    "template prologue can only fuse nodes with a single use": R.MATMUL,
    "template prologue can only fuse nodes with a single use into template": R.MATMUL,
    "buf1 is not a ComputedBuffer": R.MATMUL,
    "buf1 is not a Pointwise op": R.MATMUL,
    "buf1 does not have a computed buffer name": R.MATMUL,
    "op1 has aliasing or mutation": R.MATMUL,
    "op1 is a reduction which is not yet supported by EVT": R.MATMUL,
    "cutlass epilogue fusion is not enabled": R.MATMUL,
    "epilogue fusion is only supported for TMA-enabled gemm ops": R.MATMUL,
    "Cannot fuse epilogue node op1 into buf0, likely due to unsupported operation: erf": R.MATMUL,
    "node1 is extern or nop": R.OPAQUE,
    "node2 is extern or nop": R.OPAQUE,
    "node1 is extern but not a triton kernel": R.OPAQUE,
    "node1's triton kernel doesn't support epilogue fusion": R.OPAQUE,
    "node1 is extern but node2 is not SchedulerNode": R.OPAQUE,
    "node1 is extern but node2.node is not SchedulerNode": R.OPAQUE,
    "node1 is extern but node2.node.data is not Pointwise": R.OPAQUE,
    "epilogue reads from buffers other than the mutated output": R.OPAQUE,
    "intermediate nodes between node1 & node2": R.OTHER,
    "will create cycle": R.OTHER,
    "node1 must go before node2": R.OTHER,
    "node1 is nop": R.OTHER,
    "grouped node must not be fused with other nodes": R.OTHER,
    "fusion for buffer explicit disabled": R.OTHER,
    "candidate producer is not dep of any foreach consumer": R.OTHER,
    "candidate consumer has no dep in any foreach producer": R.OTHER,
}
SOURCES = ("scheduler", "choices", "codegen.simd")
SAID = re.compile(r'(?:why|WhyNoFuse\(node1, node2\))\(\s*"([^"]+)"')


@pytest.mark.parametrize("message", MESSAGES)
def test_a_known_message_has_its_kind(message: str) -> None:
    line = read_line(f"cannot fuse op0_op2 with op1: {message}")

    assert line is not None
    assert (set(line.first), set(line.second)) == ({"op0", "op2"}, {"op1"})
    meaning = meaning_of(line.reason)
    assert meaning is not UNKNOWN
    assert meaning.reason is MESSAGES[message]
    assert "{first}" in meaning.sentence
    assert "{second}" in meaning.sentence


@pytest.mark.parametrize("source", SOURCES)
def test_the_installed_torch_says_nothing_that_is_not_known(source: str) -> None:
    spec = importlib.util.find_spec(f"torch._inductor.{source}")
    assert spec is not None
    assert spec.origin is not None
    said = SAID.findall(Path(spec.origin).read_text(encoding="utf-8"))

    assert len(said) > 3
    assert [message for message in said if meaning_of(message) is UNKNOWN] == []


def test_a_benchmark_that_was_slower_is_read_with_its_buffers() -> None:
    line = read_line(
        "cannot fuse (benchmark): fusing OrderedSet(['buf0']) with OrderedSet(['buf1', 'buf2']) "
        "cause 1.250x slowdown"
    )

    assert line is not None
    assert (set(line.first), set(line.second)) == ({"buf0"}, {"buf1", "buf2"})
    assert meaning_of(line.reason).reason is R.NOT_WORTH_IT


def test_registers_that_one_op_lacks_by_itself_are_not_said_to_be_lacking_for_both() -> None:
    for which in ("first", "second"):
        assert (
            "by itself already" in meaning_of(f"register spilling of the {which} kernel").sentence
        )
    together = meaning_of("register spilling of the fused kernel").sentence
    assert together.startswith("One {code} for {first} and {second}")


def test_a_line_in_no_known_form_is_left_out() -> None:
    assert read_line("cannot fuse anything today") is None
    assert meaning_of("a reason of a later release") is UNKNOWN


def test_the_log_is_heard_without_its_colours_and_left_as_it_was() -> None:
    log: logging.Logger = internal(FUSION_LOG)
    before = (log.level, log.propagate, log.disabled, list(log.handlers))
    heard: list[str] = []

    with listening(heard.append):
        log.debug("found %d possible fusions", 2)
        log.debug("cannot fuse op0 with op1: %s", "\x1b[31mno shared data\x1b[0m")

    assert heard == ["cannot fuse op0 with op1: no shared data"]
    assert (log.level, log.propagate, log.disabled, list(log.handlers)) == before
    log.debug("cannot fuse op0 with op1: no shared data")
    assert len(heard) == 1
