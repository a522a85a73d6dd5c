"""The table: its numbers are those of the runs, its words never claim more than was measured."""

from __future__ import annotations

import io
import json
import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from explorer.cli import progress
from explorer.cli.progress import ProgressDisplay
from explorer.cli.report import report
from explorer.cli.table import Column, render, shortened
from explorer.cli.terminal import paragraphs
from explorer.model.messages import Progress, Stage
from explorer.model.opgraph import GraphBreak
from explorer.model.run import Bytes, CompileCost, Direction, Run, Timing
from explorer.recording import runs_to_plain, save_recording
from tests.fixtures_runs import (
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    sdpa_attention,
    wrong_randomness,
    wrong_result,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Outcome


def row(text: str, start: str) -> list[str]:
    """The cells of the first row that starts so: cells are two blanks or more apart."""
    line = next(line for line in text.splitlines() if line.startswith(start))
    return re.split(r"\s{2,}", line.strip())


def test_columns_are_aligned() -> None:
    columns = [
        Column(title="name", is_text=True),
        Column(title="a", group="a long group"),
        Column(title="b", group="a long group"),
        Column(title="end"),
    ]
    assert render(columns, [["x", "1", "22", "3"], [], ["longer", "100", "2", "3"]]) == [
        "        a long group",
        "name           a   b  end",
        "-------------------------",
        "x              1  22    3",
        "-------------------------",
        "longer       100   2    3",
    ]


def test_rates_say_the_pedigree_of_every_launch_not_of_the_first() -> None:
    run = eager_attention()
    first = replace(run.launches[0], bytes_read=Bytes(modelled=0), bytes_written=Bytes(modelled=4))
    mixed = replace(run, launches=(first, *run.launches[1:]))
    assert "GB/s of the counted, else the modelled bytes" in report([mixed])
    assert "GB/s of the counted bytes" in report([run])


def test_a_long_text_is_cut_with_a_sign() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"


def test_a_sentence_is_broken_at_blanks_and_a_plan_is_not() -> None:
    words, plan = " ".join(["word"] * 23), "+".join(["long"] * 30)
    assert paragraphs([f"{words} ends\nit", plan], "  ") == [
        f"  {words}",
        "    ends it",
        f"  {plan}",
    ]
    assert len(f"  {words} ends") == 120 + 1


def test_the_heading_says_that_backward_ran_as_well() -> None:
    run = eager_attention()
    both = replace(run, chain=replace(run.chain, direction=Direction.FORWARD_BACKWARD))
    assert "(attention, forward + backward)" in report([both])
    assert "forward" not in report([run]).splitlines()[0]


def test_a_strategy_has_its_time_traffic_and_error() -> None:
    text = report((eager_attention(), sdpa_attention()))
    assert row(text, "sdpa = cuDNN") == [
        "sdpa = cuDNN", "1.14 ms", "[1.14–1.14 ms]", "5", "cold L2, events", "4.69×", "1",
        "101 MB", "16.9 MB", "counted", "3.24 GB", "3.9e-03",
    ]  # fmt: skip
    assert row(text, "eager ")[5] == "baseline"
    assert "on 25% of the output" in text


def test_modelled_and_counted_stand_side_by_side() -> None:
    text = report((eager_attention(),))
    assert row(text, "3  add") == [
        "3", "add", "elementwise_kernel<128, 4, CUDAFu…", "mask", "1,410", "1,107", "2,147",
        "+93.9%", "1,074", "1,086", "+1.1%", "2,293",
    ]  # fmt: skip
    assert row(text, "   sum")[2:] == ["5,453", "6,495", "+19.1%", "5,922", "5,915", "-0.1%"]


def test_a_few_bytes_get_no_percentage() -> None:
    seed = row(report((compiled_attention(),)), "1  seed")
    assert seed[:4] == ["1", "seed", "distribution_elementwise_grid_str…", "helper"]
    assert not any("%" in cell for cell in seed)


def test_a_cpu_has_loop_nests_without_a_time_and_no_counted_column() -> None:
    text = report((cpu_attention(),))
    assert "DRAM traffic" in text
    assert "counted" not in text
    assert row(text, "     loop 1") == ["loop 1", "scale+mask+softmax", "33.6", "0.016"]


def test_a_speed_up_needs_a_named_baseline_and_clear_ranges() -> None:
    assert "over eager" not in report((compiled_attention(), sdpa_attention()))
    eager = eager_attention()
    close = replace(compiled_attention(), timing=eager.timing)
    assert row(report((eager, close)), "compile ")[5] == "equal within noise"
    untimed = replace(close, timing=Timing())
    assert row(report((eager, untimed)), "compile ")[5] == "–"


def test_a_failed_run_says_why() -> None:
    text = report((eager_attention(), failed_run()))
    assert "eager: failed: CUDA ran out of memory at 180 GB" in text
    assert row(text, "eager    ")[1] != "failed"
    assert any(re.search(r"^eager +failed +–", line) for line in text.splitlines())


def test_other_work_gets_a_heading_of_its_own() -> None:
    text = report((eager_attention(), cpu_attention()))
    assert text.count("Attention, as in the textbook (attention)") == 2
    assert "on NVIDIA H200 (cuda:0), torch 2.11.0, triton 3.6.0, driver 580.0" in text
    assert "over eager" not in text


def test_what_has_to_be_known_stands_below() -> None:
    cost = CompileCost(first_call_s=5.25, graph_breaks=(GraphBreak(place="f:3", reason="print"),))
    run = replace(compiled_attention(), compile=cost, warnings=("The machine was busy.",))
    lines = report((run,)).splitlines()
    assert lines[-4:] == [
        "  compile: the first call took 5.25 s",
        "  compile: graph break at f:3: print",
        "  compile: Counted per launch in 0.9 s. Cache: as the launch before left it.",
        "  compile: The machine was busy.",
    ]


def test_an_inaccurate_result_is_told() -> None:
    run = eager_attention()
    assert run.accuracy is not None
    wrong = replace(run, accuracy=replace(run.accuracy, max_abs_error=0.5, passed=False))
    assert row(report((wrong,)), "eager ")[-1] == "5.0e-01 too large"


def test_a_failed_check_stands_above_every_number_and_no_ratio_beside_it() -> None:
    runs = (eager_attention(), wrong_randomness(compiled_attention()), sdpa_attention())
    text = report(runs)
    lines = text.splitlines()
    assert lines[4:6] == [
        "  CHECK FAILED: compile: Its randomness is wrong: share of probabilities kept, 1 − p: "
        "0.8008, expected 0.8984 ± 0.0005",
        "    (230 of 256; the chain asks for 0.9).",
    ]
    assert row(text, "compile ")[5] == "withheld"
    assert row(text, "sdpa = cuDNN")[5] == "4.69×"
    assert "CHECK FAILED" not in report((eager_attention(), sdpa_attention()))


def test_over_a_wrong_baseline_nothing_is_told() -> None:
    text = report((wrong_result(eager_attention()), sdpa_attention()))
    assert "CHECK FAILED: eager: Its result is wrong" in text
    assert row(text, "sdpa = cuDNN")[5] == "withheld"


def test_what_was_not_checked_says_so() -> None:
    text = report((eager_attention(), replace(sdpa_attention(), accuracy=None)))
    assert row(text, "sdpa = cuDNN")[5] == "4.69×, not checked"


def test_nominal_and_realised_rate_are_told() -> None:
    run = wrong_randomness(compiled_attention())
    assert run.accuracy is not None
    [check] = run.accuracy.distribution
    fine = replace(check, observed=0.8985, passed=True)
    text = report((replace(run, accuracy=replace(run.accuracy, distribution=(fine,))),))
    assert (
        "compile: share of probabilities kept, 1 − p: 0.8985, expected 0.8984 ± 0.0005 "
        "(230 of 256; the chain asks for 0.9)"
    ) in text
    assert "CHECK FAILED" not in text


def test_values_that_are_not_finite_stand_in_the_place_of_an_error() -> None:
    run = eager_attention()
    assert run.accuracy is not None
    wrong = replace(run, accuracy=replace(run.accuracy, not_finite=7, passed=False))
    assert row(report((wrong,)), "eager ")[-1] == "not finite"


@pytest.fixture
def recording(tmp_path: Path) -> tuple[Path, tuple[Run, ...]]:
    runs = (eager_attention(), compiled_attention())
    path = tmp_path / "runs.kx"
    save_recording(path, runs)
    return path, runs


def test_show_prints_the_table_of_a_run(
    cli: Callable[..., Outcome], recording: tuple[Path, tuple[Run, ...]]
) -> None:
    path, runs = recording
    done = cli("show", str(path))
    assert (done.code, done.err) == (0, "")
    assert done.out == report(runs) + "\n"


def test_show_json_is_the_recording(
    cli: Callable[..., Outcome], recording: tuple[Path, tuple[Run, ...]]
) -> None:
    path, runs = recording
    assert json.loads(cli("show", str(path), "--json").out) == json.loads(
        json.dumps(runs_to_plain(runs))
    )


def test_show_refuses_what_is_no_recording(cli: Callable[..., Outcome], tmp_path: Path) -> None:
    foreign = tmp_path / "notes.kx"
    foreign.write_text("hello")
    empty = tmp_path / "empty.kx"
    save_recording(empty, ())
    for path, words in (
        (foreign, "is not a recording"),
        (empty, "holds no run"),
        (tmp_path / "missing.kx", "could not be read: No such file"),
        (tmp_path, "could not be read: Is a directory"),
    ):
        done = cli("show", str(path))
        assert (done.code, done.out) == (1, "")
        assert words in done.err
        assert done.err.count("\n") == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def step(share: float, sentence: str = "generating kernels.") -> Progress:
    return Progress(stage=Stage.COMPILE, sentence=sentence, fraction=share, strategy="compile")


def test_a_terminal_sees_one_line_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    display = ProgressDisplay(terminal)
    display.update(step(0.25))
    display.update(step(1.5, "a sentence that is much too long for it"))
    display.close()
    parts = terminal.getvalue().split("\r\x1b[K")
    assert re.fullmatch(r" +\d+ s   25 %  compile  compile: gener…", parts[1])
    assert len(parts[2]) == 39
    assert re.match(r" +\d+ s  100 %", parts[2])
    assert parts[3] == ""
    assert "\n" not in terminal.getvalue()


def test_the_seconds_go_on_between_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TICK_S", 0.001)
    terminal = Terminal()
    written = threading.Semaphore(0)
    write = terminal.write

    def count(text: str) -> int:
        written.release()
        return write(text)

    monkeypatch.setattr(terminal, "write", count)
    display = ProgressDisplay(terminal)
    display.update(step(0.25))
    assert all(written.acquire(timeout=10) for _ in range(3))
    display.close()
    shown = [part for part in terminal.getvalue().split("\r\x1b[K") if part]
    assert len(shown) >= 3
    assert all(" 25 %  compile  compile: generating kernels" in part for part in shown)


def test_a_log_gets_a_line_a_step_and_no_share() -> None:
    log = io.StringIO()
    display = ProgressDisplay(log)
    for share in (0.1, 0.2, 0.3):
        display.update(step(share))
    display.update(step(0.4, "timing"))
    display.finished(failed_run())
    display.close()
    assert log.getvalue().splitlines() == [
        "compile  compile: generating kernels", "compile  compile: timing", "eager: failed",
    ]  # fmt: skip
