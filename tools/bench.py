"""How fast the window is: figures that no test times, since a busy machine would fail them.

``make bench`` or ``python tools/bench.py [RECORDING]``. Without a recording the shipped one is
drawn, or where there is none the tests' hand-made runs. Needs no display and no GPU.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))
if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# The offscreen platform warns at each window shown that it cannot size one.
os.environ.setdefault("QT_LOGGING_RULES", "default.warning=false")

from tools.bench_figures import Figure, as_table, timed  # noqa: E402
from tools.bench_loop import (  # noqa: E402
    LONGEST_TURN_MS,
    be_flood,
    be_loading,
    be_replay,
    time_arrivals,
    time_flood,
    time_playing,
)

if TYPE_CHECKING:
    from explorer.model.run import Run

N_STARTS = 7
N_LOADINGS = 3
N_LAUNCHES = 1_000_000
N_LANES = 20
SCENE_SIZE = (1920, 1080)
TIMELINE_SIZE = (1200, 420)


def main() -> int:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", nargs="?", type=Path, help="a .kx file to draw")
    parser.add_argument("--child", choices=tuple(CHILDREN), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return CHILDREN[options.child](options.recording)
    runs, source = load_runs(options.recording)
    write(f"runs drawn: {source}\n\n")
    figures = [time_start_up(), time_import(), time_loading()]
    from PySide6.QtWidgets import QApplication

    from explorer.ui.export_views import choose_shown
    from explorer.ui.main_window import prepare_application

    application = QApplication([])
    # Each measurement opens and closes a window of its own.
    application.setQuitOnLastWindowClosed(False)
    prepare_application(application)
    figures += [*time_scene(runs), *time_timeline(), time_flood(application)]
    figures.append(time_arrivals(application, options.recording, len(runs)))
    played = runs[max(choose_shown(runs), 0)]
    figures += time_playing(played, SCENE_SIZE)
    write(as_table(figures))
    write(counter_words(runs))
    return 0


def write(text: str) -> None:
    """Print at once, so that a long measurement is seen to go on."""
    sys.stdout.write(text)
    sys.stdout.flush()


def load_runs(path: Path | None) -> tuple[tuple["Run", ...], str]:
    """The runs to draw, and what they are called."""
    from explorer.recording import load_recording

    shipped = sorted((CHECKOUT / "assets" / "recordings").glob("*.kx"))
    if path or shipped:
        chosen = path or shipped[0]
        return load_recording(chosen), chosen.name
    from tests.fixtures_runs import all_runs

    return all_runs(), "the tests' hand-made ones"


def time_start_up() -> Figure:
    """From starting a process to the window's first paint."""
    times_ms = []
    for _ in range(N_STARTS):
        begun = time.perf_counter()
        with child("window") as process:
            assert process.stdout is not None
            process.stdout.readline()
            times_ms.append((time.perf_counter() - begun) * 1e3)
            process.communicate()
    return Figure.of("process start to first paint", times_ms, 600)


def time_import() -> Figure:
    """A bare interpreter that imports Qt alone: what start-up cannot go under."""
    code = "from PySide6 import QtCore, QtGui, QtWidgets"
    times_ms = []
    for _ in range(N_STARTS):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, cwd=CHECKOUT)
        times_ms.append((time.perf_counter() - begun) * 1e3)
    return Figure.of("  of it: Python with Qt's imports", times_ms)


def child(name: str) -> "subprocess.Popen[bytes]":
    """Start this file again in another role."""
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), "--child", name],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        cwd=CHECKOUT,
    )


def be_window() -> int:
    """Open the window without a worker, say when it was painted, and end."""
    from PySide6.QtCore import QTimer
    from PySide6.QtGui import QPaintEvent
    from PySide6.QtWidgets import QApplication
    from typing_extensions import override

    from explorer.ui.main_window import MainWindow, prepare_application
    from explorer.ui.store import Store

    application = QApplication([])
    prepare_application(application)

    def tell() -> None:
        write("painted\n")
        application.quit()

    class PaintedWindow(MainWindow):
        """Tells of its first paint before anything that waits for it, such as the plots."""

        told = False

        @override
        def paintEvent(self, event: QPaintEvent) -> None:
            if not self.told:
                self.told = True
                QTimer.singleShot(0, self, tell)
            super().paintEvent(event)

    # As the program does it: scene and details follow the first paint.
    window = PaintedWindow(Store(), complete=False)
    window.show()
    return application.exec()


def time_scene(runs: Sequence["Run"]) -> list[Figure]:
    """The traffic scene of each run with launches, played through once."""
    from PySide6.QtCore import QRectF
    from PySide6.QtGui import QImage, QPainter

    from explorer.ui.scene.draw import SceneCache, draw
    from explorer.ui.theme import DARK
    from explorer.ui.timeline_layout import lane_of
    from explorer.ui.words import run_title

    image = QImage(*SCENE_SIZE, QImage.Format.Format_ARGB32_Premultiplied)
    figures = []
    for run in runs:
        if not run.launches:
            continue
        cache, total_us, n_frames = SceneCache(), lane_of(run).total_us, 200

        def frame(share: float, run: "Run" = run, cache: SceneCache = cache,
                  total_us: float = total_us) -> None:  # fmt: skip
            painter = QPainter(image)
            draw(painter, QRectF(0, 0, *SCENE_SIZE), (run,), share * total_us, DARK, cache=cache)
            painter.end()

        frame(0)
        times_ms = timed(frame, [i / n_frames for i in range(n_frames)])
        what = f"scene frame {SCENE_SIZE[0]}x{SCENE_SIZE[1]}: {run_title(run)}"
        figures.append(Figure.of(what, times_ms, 8))
    return figures


def time_timeline() -> list[Figure]:
    """A million launches in twenty lanes: laying out, all of it, a hundredth, zooming."""
    from PySide6.QtCore import QRectF
    from PySide6.QtGui import QImage, QPainter

    from explorer.model.timeline import TimeView
    from explorer.ui.theme import DARK
    from explorer.ui.timeline_draw import draw_timeline
    from explorer.ui.timeline_layout import Selected, lane_of, whole_view

    runs = [many_launches(N_LAUNCHES // N_LANES, seed) for seed in range(N_LANES)]
    lay_out_ms = timed(lane_of, runs)
    image = QImage(*TIMELINE_SIZE, QImage.Format.Format_ARGB32_Premultiplied)
    whole = whole_view(runs)

    def frame(view: TimeView) -> None:
        painter = QPainter(image)
        draw_timeline(painter, QRectF(0, 0, *TIMELINE_SIZE), runs, Selected(0), 1.0, view, DARK)
        painter.end()

    hundredth = [whole.zoomed(100, whole.end_us * i / 60, whole.end_us) for i in range(60)]
    zooming = [whole.zoomed(1.15**i, whole.end_us * 0.4, whole.end_us) for i in range(60)]
    what = f"timeline {TIMELINE_SIZE[0]}x{TIMELINE_SIZE[1]}, {N_LAUNCHES:,} launches"
    frame(whole)
    return [
        Figure.of(f"{what}: laying out a lane, once", lay_out_ms),
        Figure.of(f"{what}: all of it", timed(frame, [whole] * 30), 13),
        Figure.of(f"{what}: a hundredth", timed(frame, hundredth), 13),
        Figure.of(f"{what}: zooming", timed(frame, zooming), 13),
    ]


def many_launches(n_launches: int, seed: int) -> "Run":
    """A run of many short launches with gaps, some of them fused."""
    import random

    from tests.fixtures_runs import eager_attention

    rng, base = random.Random(seed), eager_attention()
    plain = base.launches[1]
    fused = replace(plain, ops=("scale", "mask"))
    launches, start_us = [], 0.0
    for _ in range(n_launches):
        duration_us = rng.lognormvariate(2, 1)
        kind = fused if rng.random() < 0.3 else plain
        launches.append(replace(kind, start_us=start_us, duration_us=duration_us))
        start_us += duration_us + rng.expovariate(1 / 3)
    return replace(base, id=f"many-{seed}", launches=tuple(launches), timing=None)


def time_loading() -> Figure:
    """How late the event loop is while numpy and pyqtgraph are imported beside it."""
    late_ms: list[float] = []
    for _ in range(N_LOADINGS):
        with child("loading") as process:
            out, _ = process.communicate()
            late_ms += map(float, out.split())
    what = "event loop late while scene, a recording and plot come in"
    return Figure.largest(what, late_ms, LONGEST_TURN_MS)


CHILDREN: dict[str, Callable[[Path | None], int]] = {
    "window": lambda _: be_window(),
    "loading": be_loading,
    "flood": be_flood,
    "replay": be_replay,
}


def counter_words(runs: Sequence["Run"]) -> str:
    """How long counting took where the runs were made."""
    told = [
        f"  {run.strategy.spec} on {run.device.name}: {run.counters.seconds:.2f} s (asked: < 1.5 s)"
        for run in runs
        if run.counters and run.counters.seconds is not None and run.counters.joined
    ]
    return "\ncounting bytes, set-up included:\n" + "\n".join(told) + "\n" if told else ""


if __name__ == "__main__":
    sys.exit(main())
