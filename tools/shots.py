"""Pictures of the window and of each view, to look at: ``make shots`` or ``tools/shots.py FILE``.

Without a recording the tests' hand-made runs are drawn, which nobody measured; they say so by
their file name only, so such pictures are for looking at and not for showing.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# The offscreen platform warns at each window shown that it cannot size one.
os.environ.setdefault("QT_LOGGING_RULES", "default.warning=false")

from PySide6.QtWidgets import QApplication, QWidget  # noqa: E402

from explorer.model.errors import UsageError  # noqa: E402
from explorer.model.messages import Progress, Stage  # noqa: E402
from explorer.recording import load_recording  # noqa: E402
from explorer.ui.details_panel import FUSION_TAB, KERNELS_TAB, SESSION_TAB, SWEEP_TAB  # noqa: E402
from explorer.ui.export import VIEWS, export_png  # noqa: E402
from explorer.ui.export_views import telling_moment_us  # noqa: E402
from explorer.ui.main_window import MainWindow, prepare_application  # noqa: E402
from explorer.ui.plan_state import graph_drawn, plan_drawn  # noqa: E402
from explorer.ui.session import Session  # noqa: E402
from explorer.ui.state import WorkerPhase, drawn  # noqa: E402
from explorer.ui.store import Store  # noqa: E402
from explorer.ui.worker_process import WorkerProcess  # noqa: E402

if TYPE_CHECKING:
    from explorer.model.run import Run

SIZES = ((1440, 900), (1920, 1080), (1280, 720))
VIEW_SIZE = (1280, 720)
SETTLE_ROUNDS = 12
"""Turns of the event loop after which a layout has settled."""


def main() -> None:
    """Write every picture and say where."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", nargs="?", type=Path, help="a .kx file")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "shots")
    options = parser.parse_args()
    application = QApplication(sys.argv[:1])
    prepare_application(application)
    options.out.mkdir(exist_ok=True)
    runs = load_recording(options.recording) if options.recording else hand_made()
    plans = runs if options.recording else hand_made_sweep()
    name = options.recording.name if options.recording else "hand-made.kx"
    written = [*shoot_window(runs, name, options.out), *shoot_views(runs, plans, options.out)]
    written += shoot_sweep(plans, name, options.out)
    sys.stdout.write(f"{len(written)} pictures in {options.out}\n")


def hand_made() -> tuple["Run", ...]:
    """The tests' runs on an H200-like device."""
    from tests.fixtures_runs import compiled_attention, eager_attention, sdpa_attention

    return (eager_attention(), compiled_attention(), sdpa_attention())


def hand_made_sweep() -> tuple["Run", ...]:
    """The tests' plans of one chain, with eager and compiled."""
    from tests.fixtures_sweep import scores_sweep

    return scores_sweep()


def make_window(runs: Sequence["Run"], name: str, theme: str) -> tuple[MainWindow, Store]:
    """The window as a user has it: a worker that is not started, the second run shown."""
    store = Store()
    store.set_theme(theme)
    session = Session(store, WorkerProcess(["true"], {}))
    window = MainWindow(store, session)
    if runs:
        window.files.show_recording(Path(name), runs)
    items = drawn(store.state)
    if items:
        shown = items[min(1, len(items) - 1)]
        store.show_run(shown.key)
        store.set_playhead(telling_moment_us(shown.run) or 0.0)
    store.set_worker(WorkerPhase.READY, "worker ready")
    return window, store


def settle(window: MainWindow, size: tuple[int, int]) -> None:
    """Show a window at a size, with its plot made and its layout done."""
    window.resize(*size)
    window.show()
    turn()
    window.results.fill()
    window.turns.finish()
    turn()


def turn() -> None:
    """Let the event loop do what waits."""
    for _ in range(SETTLE_ROUNDS):
        QApplication.processEvents()


def grab(widget: QWidget, path: Path) -> Path:
    """Write a widget as it is."""
    widget.grab().save(str(path))
    return path


def shoot_window(runs: Sequence["Run"], name: str, out: Path) -> list[Path]:
    """The window in each size and theme, and its states at 1440x900."""
    written = []
    for theme in ("dark", "light"):
        for size in SIZES:
            window, _ = make_window(runs, name, theme)
            settle(window, size)
            written.append(grab(window, out / f"window-{size[0]}x{size[1]}-{theme}.png"))
            window.close()
    for state, prepare in STATES.items():
        window, store = make_window(() if state == "empty" else runs, name, "dark")
        prepare(window, store)
        settle(window, SIZES[0])
        written.append(grab(window, out / f"state-{state}.png"))
        if state == "form":
            window.header.open_form()
            turn()
            written.append(grab(window.header.form, out / "form.png"))
        window.close()
    return written


def shoot_sweep(runs: Sequence["Run"], name: str, out: Path) -> list[Path]:
    """The window with the sweep of the shown run's plans."""
    written = []
    for theme in ("dark", "light"):
        for size in SIZES[:2]:
            window, _ = make_window(runs, name, theme)
            window.details.tabs.setCurrentIndex(SWEEP_TAB)
            settle(window, size)
            written.append(grab(window, out / f"sweep-{size[0]}x{size[1]}-{theme}.png"))
            window.close()
    return written


def shoot_views(runs: Sequence["Run"], plans: Sequence["Run"], out: Path) -> list[Path]:
    """Each view apart, as the export writes it."""
    written = []
    for view in VIEWS:
        for theme in ("dark", "light"):
            path = out / f"view-{view}-{theme}.png"
            drawn_runs = plans if view == "sweep" else runs
            # A recording may hold no plan, of which alone a sweep is drawn.
            with suppress(UsageError):
                export_png(
                    drawn_runs, path, view=view, size=VIEW_SIZE, scale=1.0, theme=theme, at_us=None
                )
                written.append(path)
    return written


def _busy(window: MainWindow, store: Store) -> None:
    del window
    store.set_worker(WorkerPhase.BUSY, "measuring")
    store.set_progress(
        Progress(
            stage=Stage.TIMING, sentence="timing with cold L2", fraction=0.42, strategy="compile"
        )
    )


def _compare(window: MainWindow, store: Store) -> None:
    del window
    store.compare_run(drawn(store.state)[-1].key)


def _message(window: MainWindow, store: Store) -> None:
    del window
    store.tell(
        "The worker was killed from outside (signal 9), as the system does when memory runs out; "
        "choose a smaller size or close other programs, then run again."
    )


def _failed(window: MainWindow, store: Store) -> None:
    """As a run looks that the user asked to see though it failed."""
    error = "CUDA ran out of memory; choose a smaller size: seq_len 2048 fits."
    run = replace(drawn(store.state)[0].run, id="failed", launches=(), timing=None, error=error)
    store.add_runs([run])
    store.show_run(store.state.runs[-1].key)
    _message(window, store)


def _table(window: MainWindow, store: Store) -> None:
    del store
    window.details.tabs.setCurrentIndex(KERNELS_TAB)


def _fusion(window: MainWindow, store: Store) -> None:
    del store
    window.details.tabs.setCurrentIndex(FUSION_TAB)
    window.scene.finding.why.click()


def _session(window: MainWindow, store: Store) -> None:
    store.pin_run(store.state.runs[0].key, pinned=True)
    store.remove_run(store.state.runs[-1].key)
    window.details.tabs.setCurrentIndex(SESSION_TAB)
    window.details.runs.select(store.state.runs[0].key)


def _form(window: MainWindow, store: Store) -> None:
    del window
    store.set_parameter("seq_len", "12x")


def _empty(window: MainWindow, store: Store) -> None:
    del window, store


def _plan(window: MainWindow, store: Store) -> None:
    """A plan as it is being drawn, one link with the keyboard."""
    graph, plan = graph_drawn(store.state), plan_drawn(store.state)
    if graph is None or plan is None:
        return
    first, second = graph.ops[0].name, graph.ops[1].name
    store.plan.set_link(first, second, fused=not plan.shares(first, second))
    window.graph.view.setFocus()


STATES: dict[str, Callable[[MainWindow, Store], None]] = {
    "busy": _busy,
    "compare": _compare,
    "empty": _empty,
    "failed": _failed,
    "form": _form,
    "fusion": _fusion,
    "message": _message,
    "plan": _plan,
    "session": _session,
    "table": _table,
}


if __name__ == "__main__":
    main()
