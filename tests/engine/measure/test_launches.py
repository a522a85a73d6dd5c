"""The launches of the attention chain on a CPU, against bytes counted by hand."""

from collections.abc import Iterator

import pytest
import torch

from explorer.chains.descriptor import Chain, OpName
from explorer.engine.capture import capture
from explorer.engine.chain_functions.base import InputSpec
from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.prepare import prepare
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import find_strategy
from explorer.model.run import Launch, StrategyInfo
from explorer.model.tensor import TensorRole

HEADS, SEQ, DIM = 2, 192, 32
# fp32: 4 bytes an element.
QKV = HEADS * SEQ * DIM * 4
SCORES = HEADS * SEQ * SEQ * 4
MASK = SEQ * SEQ * 4
ROWS = HEADS * SEQ * 4
SEED = 8

EAGER = StrategyInfo(name="eager")
COMPILE = StrategyInfo(name="compile")


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    settings = {"heads": HEADS, "seq_len": SEQ, "head_dim": DIM, "dtype": "fp32"}
    return prepare("attention", settings, torch.device("cpu"))


@pytest.fixture(scope="module")
def eager(prepared: Prepared) -> LaunchRecord:
    built = find_strategy("eager").build(prepared)
    return record_launches(built.call, prepared=prepared, strategy=EAGER, counters=None)


@pytest.fixture(scope="module")
def compiled(prepared: Prepared) -> Iterator[LaunchRecord]:
    with observing_compilation() as observation:
        built = find_strategy("compile").build(prepared)
    yield record_launches(
        built.call, prepared=prepared, strategy=COMPILE, counters=None, observation=observation
    )
    built.close()


def bytes_of(launch: Launch) -> tuple[int | None, int | None]:
    return launch.bytes_read.modelled, launch.bytes_written.modelled


def accesses(launch: Launch) -> dict[str, tuple[int, int]]:
    return {a.tensor: (a.bytes_read, a.bytes_written) for a in launch.accesses}


def test_eager_launches_one_kernel_an_op_and_three_for_dropout(eager: LaunchRecord) -> None:
    assert [(launch.title, launch.ops) for launch in eager.launches] == [
        ("qk", ("qk",)),
        ("scale", ("scale",)),
        ("mask", ("mask",)),
        ("softmax", ("softmax",)),
        ("dropout: bernoulli", ("dropout",)),
        ("dropout: div", ("dropout",)),
        ("dropout: mul", ("dropout",)),
        ("pv", ("pv",)),
    ]
    assert not any(launch.is_helper for launch in eager.launches)
    assert eager.warnings == ()


def test_eager_bytes_equal_the_hand_counts(eager: LaunchRecord) -> None:
    qk, scale, mask, softmax, draw, divide, multiply, pv = eager.launches
    assert bytes_of(qk) == (2 * QKV, SCORES)
    assert bytes_of(scale) == (SCORES, SCORES)
    assert bytes_of(mask) == (SCORES + MASK, SCORES)
    assert bytes_of(softmax) == (SCORES, SCORES)
    # On a CPU dropout draws fp32 zeros and ones, scales them, and multiplies by them.
    assert bytes_of(draw) == (0, SCORES)
    assert bytes_of(divide) == (SCORES, SCORES)
    assert bytes_of(multiply) == (2 * SCORES, SCORES)
    assert bytes_of(pv) == (SCORES + QKV, QKV)


def test_eager_names_every_tensor(eager: LaunchRecord) -> None:
    by_title = {launch.title: accesses(launch) for launch in eager.launches}
    assert by_title["qk"] == {"q": (QKV, 0), "k": (QKV, 0), "scores": (0, SCORES)}
    assert by_title["mask"] == {
        "scaled": (SCORES, 0),
        "mask": (MASK, 0),
        "masked": (0, SCORES),
    }
    assert by_title["dropout: mul"] == {
        "probs": (SCORES, 0),
        "random numbers": (SCORES, 0),
        "dropped": (0, SCORES),
    }
    assert by_title["pv"] == {"dropped": (SCORES, 0), "v": (QKV, 0), "out": (0, QKV)}
    roles = {tensor.id: tensor.role for tensor in eager.tensors}
    assert roles["mask"] is TensorRole.INPUT
    assert roles["random numbers"] is TensorRole.WORKSPACE
    assert roles["out"] is TensorRole.OUTPUT


def test_launches_follow_each_other_on_one_axis(eager: LaunchRecord) -> None:
    end = 0.0
    total = 0.0
    for launch in eager.launches:
        assert launch.start_us is not None
        assert launch.duration_us is not None
        assert launch.start_us >= end
        end = launch.start_us + launch.duration_us
        total += launch.duration_us
    assert eager.launches[0].start_us == 0.0
    assert eager.trace_total_us == pytest.approx(end)
    assert eager.launch_total_us == pytest.approx(total)


def test_compiled_code_fuses_the_ops_between_the_matmuls(compiled: LaunchRecord) -> None:
    assert [(launch.title, launch.ops) for launch in compiled.launches] == [
        ("random seeds", ()),
        ("qk", ("qk",)),
        ("scale + mask + softmax + dropout", ("scale", "mask", "softmax", "dropout")),
        ("pv", ("pv",)),
    ]
    assert [launch.is_helper for launch in compiled.launches] == [True, False, False, False]
    assert compiled.warnings == ()


def test_what_is_fused_stays_on_chip(compiled: LaunchRecord) -> None:
    assert [launch.stays_on_chip for launch in compiled.launches] == [
        (), (), ("scaled", "masked", "probs"), (),
    ]  # fmt: skip
    tensors = {tensor.id for tensor in compiled.tensors}
    assert tensors.isdisjoint({"scaled", "masked", "probs"})
    assert {"scores", "dropped", "out"} <= tensors


def test_a_function_s_bytes_are_those_of_its_loop_nests(compiled: LaunchRecord) -> None:
    """One nest takes the exponentials, the next divides them: between them they are in memory."""
    fused = compiled.launches[2]
    assert accesses(fused) == {
        "scores": (SCORES, 0),
        "mask": (MASK, 0),
        "softmax: exp": (SCORES, SCORES),
        "random seeds": (SEED, 0),
        "softmax: amax": (0, ROWS),
        "softmax: sum": (0, ROWS),
        "dropped": (0, SCORES),
    }
    first, second = fused.loop_nests
    assert (first.ops, first.bytes_read, first.bytes_written) == (
        ("scale", "mask", "softmax"), SCORES + MASK, SCORES + ROWS,
    )  # fmt: skip
    assert (second.ops, second.bytes_read, second.bytes_written) == (
        ("softmax", "dropout"), SCORES + SEED, SCORES + ROWS,
    )  # fmt: skip
    assert bytes_of(fused) == (2 * SCORES + MASK + SEED, 2 * SCORES + 2 * ROWS)


def test_generated_code_comes_along(compiled: LaunchRecord) -> None:
    fused = compiled.launches[2]
    assert fused.code is not None
    assert list(compiled.code) == [fused.code]
    assert 'extern "C"' in compiled.code[fused.code]
    assert all(launch.code is None for launch in compiled.launches if launch is not fused)


def test_without_the_observation_nothing_is_guessed(prepared: Prepared) -> None:
    built = find_strategy("compile").build(prepared)
    record = record_launches(built.call, prepared=prepared, strategy=COMPILE, counters=None)
    built.close()
    assert all(launch.ops == () for launch in record.launches)
    assert not any(launch.is_helper for launch in record.launches)
    assert "not observed" in record.warnings[0]
    # The bytes are known all the same: from the arguments, each once.
    assert bytes_of(record.launches[2]) == (SCORES + MASK + SEED, SCORES + 2 * ROWS)


def drop_then_normalise(x: torch.Tensor) -> torch.Tensor:
    """Dropout before softmax: the generated code writes its random numbers to memory."""
    dropped = torch.dropout(x, 0.25, True)
    return torch.softmax(dropped, dim=-1)


def test_random_numbers_that_reach_memory_are_seen() -> None:
    rows, columns = 64, 96
    captured = capture(
        drop_then_normalise,
        {"x": InputSpec(shape=(rows, columns), dtype=torch.float32)},
        (
            OpName(name="dropout", detail="", output="dropped"),
            OpName(name="softmax", detail="", output="probs"),
        ),
        source_file=__file__,
        device=torch.device("cpu"),
    )
    prepared = Prepared(
        chain=Chain(id="own", title="", look_at="", formula="", parameters=(), all_ops=()),
        parameters={},
        device=torch.device("cpu"),
        seed=0,
        inputs={"x": torch.randn(rows, columns)},
        function=drop_then_normalise,
        graph=captured.graph,
        graph_module=captured.graph_module,
        nodes=captured.nodes,
    )
    with observing_compilation() as observation:
        built = find_strategy("compile").build(prepared)
    record = record_launches(
        built.call, prepared=prepared, strategy=COMPILE, counters=None, observation=observation
    )
    built.close()
    fused = record.launches[-1]
    assert fused.ops == ("dropout", "softmax")
    assert fused.stays_on_chip == ("dropped",)
    size = rows * columns * 4
    assert accesses(fused)["random numbers"] == (size, size)
    assert accesses(fused)["probs"] == (0, size)
    assert accesses(fused)["x"][0] >= size
