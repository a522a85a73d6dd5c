"""Pictures: every view at exactly the size asked, with its source, whole or not at all."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import qInstallMessageHandler
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer.model.errors import RecordingError, UsageError
from explorer.model.run import Run
from explorer.recording import save_recording
from explorer.ui import export_table, main_window
from explorer.ui.export import LATER_VIEWS, VIEWS, export_png, save_widget_png
from explorer.ui.export_views import choose_shown, telling_moment_us
from explorer.ui.kernel_columns import COLUMNS, Column, Entry, cell_text, entries_of
from explorer.ui.main_window import MainWindow
from explorer.ui.store import Store
from explorer.ui.theme import DARK, LIGHT, THEMES
from explorer.ui.words import source_words
from tests.conftest import CHECKOUT
from tests.fixtures_param_sweep import k_sweep, seq_len_sweep
from tests.fixtures_runs import (
    all_runs,
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    long_run,
    sdpa_attention,
)
from tests.fixtures_sweep import broken, many_plans, plan_run, scores_sweep

RUNS = (eager_attention(), compiled_attention(), sdpa_attention())
SWEEP = scores_sweep()
VIEWS_OF_ANY_RUN = tuple(view for view in VIEWS if view != "sweep")


def export(
    out: Path,
    runs: tuple[Run, ...] | None = None,
    view: str = "timeline",
    size: tuple[int, int] = (800, 300),
    scale: float = 1.0,
    theme: str = "dark",
    at_us: float | None = None,
    recorded: bool = True,
) -> QImage:
    if runs is None:
        runs = SWEEP if view == "sweep" else RUNS
    export_png(
        runs, out, view=view, size=size, scale=scale, theme=theme, at_us=at_us, recorded=recorded
    )
    image = QImage(str(out))
    assert not image.isNull()
    return image


def has_color(image: QImage, color: QColor, least: int = 20) -> bool:
    """Whether at least so many pixels have about this colour."""
    found = 0
    for y in range(image.height()):
        for x in range(image.width()):
            pixel = image.pixelColor(x, y)
            found += (
                abs(pixel.red() - color.red()) < 10
                and abs(pixel.green() - color.green()) < 10
                and abs(pixel.blue() - color.blue()) < 10
            )
            if found >= least:
                return True
    return False


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_exactly_the_size_asked(
    qapp: QApplication, tmp_path: Path, view: str
) -> None:
    image = export(tmp_path / "a.png", view=view, size=(901, 501), scale=1.5)
    assert (image.width(), image.height()) == (1352, 752)
    assert has_color(image, DARK.color("text"))


@pytest.mark.parametrize("size", [(300, 480), (64, 32), (1120, 250)])
@pytest.mark.parametrize("view", VIEWS)
def test_odd_sizes_are_kept(
    qapp: QApplication, tmp_path: Path, view: str, size: tuple[int, int]
) -> None:
    image = export(tmp_path / "a.png", view=view, size=size)
    assert (image.width(), image.height()) == size


@pytest.mark.parametrize("view", VIEWS_OF_ANY_RUN)
@pytest.mark.parametrize(
    "runs", [(failed_run(),), (cpu_attention(),), (long_run(200),), all_runs()],
    ids=["failed", "cpu", "long", "all"],
)  # fmt: skip
def test_every_view_takes_every_kind_of_run(
    qapp: QApplication, tmp_path: Path, view: str, runs: tuple[Run, ...]
) -> None:
    assert export(tmp_path / "a.png", runs, view, size=(700, 400)).width() == 700


@pytest.mark.parametrize(
    "runs",
    [SWEEP[2:], SWEEP[:4], (plan_run("scale+mask+softmax|dropout"),), (broken(SWEEP[2]),),
     (*all_runs(), *SWEEP), many_plans(6)],
    ids=["without eager", "cut short", "one", "failed", "among others", "many"],
)  # fmt: skip
def test_a_sweep_of_any_plans_is_drawn(
    qapp: QApplication, tmp_path: Path, runs: tuple[Run, ...]
) -> None:
    image = export(tmp_path / "a.png", runs, "sweep", size=(900, 500))
    assert has_color(image, DARK.color("text"))


@pytest.mark.parametrize("view", VIEWS)
def test_a_platform_without_a_screen_has_nothing_to_warn_of(
    qapp: QApplication, tmp_path: Path, view: str
) -> None:
    said: list[str] = []
    before = qInstallMessageHandler(lambda _kind, _context, message: said.append(message or ""))
    try:
        export(tmp_path / "a.png", view=view, size=(1280, 720))
    finally:
        qInstallMessageHandler(before)
    assert said == []


def test_a_sweep_shows_plans_front_and_source(qapp: QApplication, tmp_path: Path) -> None:
    image = export(
        tmp_path / "a.png", view="sweep", size=(1280, 720), scale=1.0, theme="dark", at_us=None
    )
    for name in ("fused", "compute", "read", "plain"):
        assert has_color(image, DARK.color(name)), name
    assert has_color(image.copy(0, 690, 1280, 30), DARK.color("write")), "RECORDED at the foot"


def test_without_a_plan_there_is_no_sweep_to_draw(qapp: QApplication, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sweep to draw"):
        export(tmp_path / "a.png", RUNS, "sweep")
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize("theme", THEMES)
def test_the_theme_is_that_asked(qapp: QApplication, tmp_path: Path, theme: str) -> None:
    image = export(tmp_path / "a.png", theme=theme)
    assert image.pixelColor(2, 2) == THEMES[theme].color("bg")
    assert has_color(image, THEMES[theme].color("fused"), 500)


def test_exporting_leaves_the_applications_palette(qapp: QApplication, tmp_path: Path) -> None:
    before = qapp.palette()
    export(tmp_path / "a.png", view="window", size=(1120, 640), theme="light")
    assert qapp.palette() == before


def test_the_same_runs_give_the_same_pixels(qapp: QApplication, tmp_path: Path) -> None:
    for view in VIEWS:
        first = export(tmp_path / "a.png", view=view, size=(600, 360))
        export(tmp_path / "b.png", view=view, size=(500, 200), theme="light", at_us=7.0)
        assert export(tmp_path / "c.png", view=view, size=(600, 360)) == first, view


def test_the_next_run_in_a_picture_is_of_the_shown_chain(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    class Noting(MainWindow):
        def __init__(self, store: Store) -> None:
            super().__init__(store)
            drawn.append(store.state.chain)

    monkeypatch.setattr(main_window, "MainWindow", Noting)
    export(tmp_path / "window.png", scores_sweep(), "window", size=(1120, 690))
    assert drawn == ["attention-scores"]


def test_the_moment_moves_the_playhead(qapp: QApplication, tmp_path: Path) -> None:
    early = export(tmp_path / "a.png", at_us=10.0)
    late = export(tmp_path / "b.png", at_us=3000.0)
    assert early != late


def test_without_a_moment_the_fused_launch_runs() -> None:
    run = RUNS[choose_shown(RUNS)]
    moment = telling_moment_us(run)
    assert run is RUNS[1]
    assert moment is not None
    assert 400 < moment < 3400
    assert telling_moment_us(failed_run()) is None
    assert choose_shown((failed_run(),)) == -1


def test_the_foot_tells_the_source_in_full(qapp: QApplication, tmp_path: Path) -> None:
    words = source_words(RUNS, recorded=True)
    for part in (
        "RECORDED", "NVIDIA H200", "driver 580.0", "2026-01-01", "torch 2.11.0", "triton 3.6.0",
        "Kernel Explorer 0.1.0", "times: device events, cold L2", "bytes: counted",
    ):  # fmt: skip
        assert part in words.split(" · ")[0:20] or part in words
    assert "RECORDED" not in source_words(RUNS, recorded=False)
    recorded = export(tmp_path / "a.png")
    fresh = export(tmp_path / "b.png", recorded=False)
    foot = recorded.copy(0, 270, 800, 30)
    assert has_color(foot, DARK.color("write"))
    assert not has_color(fresh.copy(0, 270, 800, 30), DARK.color("write"))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"view": "heartbeat"}, "not yet built"),
        ({"view": "side"}, "There is no view 'side'"),
        ({"theme": "blue"}, "There is no theme 'blue'"),
        ({"size": (0, 10)}, "above zero"),
        ({"scale": -1.0}, "above zero"),
        ({"size": (16000, 16000), "scale": 8.0}, "million pixels"),
        ({"at_us": 1e9}, "outside the run, which takes 3.81 ms"),
        ({"at_us": -1.0}, "outside the run"),
        ({"runs": ()}, "no run to draw"),
    ],
)
def test_what_does_not_exist_is_refused(
    qapp: QApplication, tmp_path: Path, wrong: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        export(tmp_path / "a.png", **wrong)  # type: ignore[arg-type]  # one wrong value a case
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_room_says_what_it_leaves_out() -> None:
    from explorer.ui.export_table import _columns_that_fit, _most_rows, _widths

    tables = [entries_of(run) for run in (*RUNS, long_run(60))]
    widths = _widths(tables)
    kept, left_out = _columns_that_fit(tables, widths, 900)
    assert left_out[0] == "Kernel"
    assert {"duration_us", "read_counted_mb"} <= {column.key for column in kept}
    assert len(kept) + len(left_out) <= len(COLUMNS)
    assert _columns_that_fit(tables, widths, 5000)[1] == []
    assert 6 <= _most_rows(tables, 1200) < 60
    assert _most_rows(tables, 10) == 1


def test_the_work_for_a_table_grows_with_its_rows_alone(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells were once measured anew for each row: a hundred runs took a minute."""
    texts: list[object] = []

    def counted(column: Column, entry: Entry) -> str:
        texts.append(entry)
        return cell_text(column, entry)

    monkeypatch.setattr(export_table, "cell_text", counted)
    runs = (eager_attention(),) * 10
    export(tmp_path / "a.png", runs, view="table", size=(1600, 1600))
    cells = len(COLUMNS) * sum(len(entries_of(run)) for run in runs)
    assert len(texts) <= 2 * cells


def test_later_views_are_known_by_name() -> None:
    assert set(LATER_VIEWS) == {"heartbeat", "comparison"}
    assert VIEWS[0] == "window"


def test_a_folder_that_is_not_there_is_one_sentence(qapp: QApplication, tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="could not be written: No such file"):
        export(tmp_path / "nowhere" / "a.png")


def test_a_picture_that_was_there_survives_a_failure(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a.png"
    export(out)
    before = out.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(RecordingError, match="No space left on device"):
        export(out, theme="light")
    assert out.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_a_widget_is_saved_with_its_source(qtbot: QtBot, tmp_path: Path) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.resize(900, 200)
    out = tmp_path / "a.png"
    save_widget_png(widget, out, RUNS, theme=LIGHT, scale=2.0, recorded=True)
    image = QImage(str(out))
    assert image.width() == 1800
    assert image.height() > 400
    assert has_color(image.copy(0, 400, 1800, image.height() - 400), LIGHT.color("write"))


def test_it_works_without_display_and_application(tmp_path: Path) -> None:
    recording, out = tmp_path / "runs.kx", tmp_path / "a.png"
    save_recording(recording, RUNS)
    code = (
        "import sys; from pathlib import Path\n"
        "from explorer.recording import load_recording\n"
        "from explorer.ui.export import export_png\n"
        "export_png(load_recording(Path(sys.argv[1])), Path(sys.argv[2]), view='window',\n"
        "           size=(1440, 900), scale=1, theme='dark', at_us=None)\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", code, str(recording), str(out)],
        cwd=CHECKOUT, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    image = QImage(str(out))
    assert (image.width(), image.height()) == (1440, 900)
    assert has_color(image, DARK.color("fused"), 500)


@pytest.mark.usefixtures("qapp")
class TestParameterSweep:
    def test_it_is_drawn_where_no_plan_was_run(self, tmp_path: Path) -> None:
        out = tmp_path / "sweep.png"
        export_png(
            k_sweep(), out, view="sweep", size=(1280, 720), scale=1.0, theme="dark", at_us=None
        )
        image = QImage(str(out))
        assert (image.width(), image.height()) == (1280, 720)
        seen = {QColor(image.pixel(x, y)).name() for x in range(0, 1280, 2) for y in range(720)}
        assert DARK.fused.lower() in seen
        assert DARK.plain.lower() in seen

    def test_no_line_is_covered_by_the_bends_of_another(self, tmp_path: Path) -> None:
        out = tmp_path / "sweep.png"
        export_png(
            seq_len_sweep(),
            out,
            view="sweep",
            size=(1280, 720),
            scale=1.0,
            theme="dark",
            at_us=None,
        )
        image = QImage(str(out))
        # The dashes: of the right upper plot the row with the most pixels brighter than the grid.
        right = range(700, 1240)
        rows = {
            y: [x for x in right if QColor(image.pixel(x, y)).lightness() > 70]
            for y in range(180, 360)
        }
        dashes = max(rows.values(), key=len)
        assert max(after - before for before, after in pairwise(dashes)) < 20
