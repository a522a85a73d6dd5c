"""What fits: defaults become smaller, and what was asked for is refused with what would fit."""

import dataclasses
import re

import pytest

from explorer.engine.fitting import Room, capture_that_fits, refuse
from explorer.engine.prepare import Subject
from explorer.engine.strategies import find_strategy
from explorer.model.device import Ceilings, Device, DeviceKind
from explorer.model.errors import UsageError

GB = 10**9
EAGER = find_strategy("eager")
SDPA = find_strategy("sdpa")
SLOW = Ceilings(
    copy_bytes_per_s=10e9,
    read_bytes_per_s=10e9,
    write_bytes_per_s=10e9,
    flops_per_s={"bf16": 1e15},
    measured_at="",
)


def gpu(free_bytes: int, ceilings: Ceilings | None = None, *, drives_display: bool = False) -> Room:
    device = Device(
        id="cuda:0",
        name="made up",
        kind=DeviceKind.CUDA,
        memory_bytes=80 * GB,
        free_bytes=free_bytes,
        l2_bytes=50 << 20,
        sm_count=100,
        ceilings=ceilings,
        drives_display=drives_display,
    )
    return Room(device=device, free_bytes=free_bytes)


def test_the_default_stays_where_a_quarter_of_memory_is_enough() -> None:
    chosen, lowered = capture_that_fits(
        Subject(chain="attention", settings={}), [EAGER], gpu(140 * GB)
    )
    assert chosen.parameters["seq_len"] == 4096
    assert lowered == ()


def test_a_default_is_halved_until_a_quarter_is_enough_and_says_so() -> None:
    chosen, lowered = capture_that_fits(
        Subject(chain="attention", settings={}), [EAGER], gpu(8 * GB)
    )
    assert chosen.parameters["seq_len"] == 2048
    assert len(lowered) == 1
    assert lowered[0].startswith("The default of seq_len was lowered from 4096 to 2048")
    assert "8.00 GB" in lowered[0]


def test_a_strategy_that_holds_less_keeps_the_default() -> None:
    chosen, _ = capture_that_fits(Subject(chain="attention", settings={}), [SDPA], gpu(8 * GB))
    assert chosen.parameters["seq_len"] == 4096


def test_what_the_user_chose_is_not_touched() -> None:
    chosen, lowered = capture_that_fits(
        Subject(chain="attention", settings={"seq_len": 4096}), [EAGER], gpu(8 * GB)
    )
    assert chosen.parameters["seq_len"] == 4096
    assert lowered == ()


def test_what_cannot_fit_is_refused_with_the_largest_size_that_does() -> None:
    room = gpu(8 * GB)
    settings: dict[str, object] = {"seq_len": 16384}
    chosen, _ = capture_that_fits(Subject(chain="attention", settings=settings), [EAGER], room)
    sentence = refuse(chosen, EAGER, room)
    assert sentence is not None
    assert sentence.startswith("eager needs about 62.5 GB")
    assert "8.00 GB are free on cuda:0" in sentence
    match = re.search(r"the largest size that fits is seq_len=(\d+)\.", sentence)
    assert match
    largest = int(match[1])
    for seq_len, fits in ((largest, True), (largest + 64, False)):
        again, _ = capture_that_fits(
            Subject(chain="attention", settings={"seq_len": seq_len}), [EAGER], room
        )
        assert (refuse(again, EAGER, room) is None) is fits


def test_a_fused_strategy_of_the_same_size_is_not_refused() -> None:
    room = gpu(8 * GB)
    settings: dict[str, object] = {"seq_len": 16384}
    chosen, _ = capture_that_fits(Subject(chain="attention", settings=settings), [SDPA], room)
    assert refuse(chosen, SDPA, room) is None


def test_where_no_size_fits_the_sentence_names_the_others() -> None:
    settings: dict[str, object] = {"batch": 4096, "heads": 1024, "seq_len": 8}
    room = gpu(GB // 10)
    chosen, _ = capture_that_fits(Subject(chain="attention", settings=settings), [EAGER], room)
    sentence = refuse(chosen, EAGER, room)
    assert sentence is not None
    assert sentence.endswith("not even seq_len=1 fits; lower batch or heads or head_dim as well.")


def test_a_gpu_with_a_display_takes_no_long_launch() -> None:
    room = gpu(140 * GB, SLOW, drives_display=True)
    # Three tensors of a gigabyte at ten gigabytes a second are more than 0.2 s.
    chosen, lowered = capture_that_fits(Subject(chain="attention", settings={}), [EAGER], room)
    assert chosen.parameters["seq_len"] == 2048
    assert lowered
    settings: dict[str, object] = {"seq_len": 4096}
    asked, _ = capture_that_fits(Subject(chain="attention", settings=settings), [EAGER], room)
    sentence = refuse(asked, EAGER, room)
    assert sentence is not None
    assert "drives a display" in sentence
    headless = dataclasses.replace(
        room, device=dataclasses.replace(room.device, drives_display=False)
    )
    assert refuse(asked, EAGER, headless) is None


def test_a_wrong_setting_is_refused_before_anything() -> None:
    with pytest.raises(UsageError, match="seq_len=0 is out of range"):
        capture_that_fits(Subject(chain="attention", settings={"seq_len": 0}), [EAGER], gpu(GB))


def test_the_sentence_names_what_else_can_be_lowered_or_nothing() -> None:
    room = gpu(1 << 20)
    endings = {
        "rmsnorm": "not even rows=1 fits; lower columns as well.",
        "adam": "not even elements=1 fits.",
    }
    for chain, ending in endings.items():
        chosen, _ = capture_that_fits(Subject(chain=chain, settings={}), [], room)
        sentence = refuse(chosen, EAGER, room)
        assert sentence is not None
        assert sentence.endswith(ending)


def test_other_chains_are_lowered_by_their_own_size() -> None:
    chosen, lowered = capture_that_fits(Subject(chain="adam", settings={}), [EAGER], gpu(8 * GB))
    assert chosen.parameters["elements"] == 1 << 24
    assert lowered[0].startswith("The default of elements was lowered from 67108864 to 16777216")
    settings: dict[str, object] = {"columns": 2048}
    chosen, lowered = capture_that_fits(
        Subject(chain="residual-rmsnorm", settings=settings), [EAGER], gpu(4 * GB)
    )
    assert (chosen.parameters["rows"], chosen.parameters["columns"]) == (8192, 2048)
    assert lowered[0].startswith("The default of rows was lowered from 16384 to 8192")
