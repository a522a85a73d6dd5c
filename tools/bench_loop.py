"""How long the event loop is held up: while messages, runs and modules come in, and in play.

A busy machine makes everything late, so turns of the loop are measured in the CPU time that the
thread of the window uses; only where another thread works beside it does lateness count.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tools.bench_figures import Figure

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from explorer.model.messages import Reply
    from explorer.model.run import Run
    from explorer.ui.main_window import MainWindow
    from explorer.ui.session import Session
    from explorer.ui.store import Store
    from explorer.ui.worker_process import WorkerProcess

    Answer = Callable[[Sequence[str], Callable[[Reply], None]], None]

N_MESSAGES = 20_000
PROGRESS_PER_RUN, PROGRESS_INTERVAL_S = 40, 0.01
LAG_INTERVAL_MS = 5
SETTLE_MS = 800
"""After the last run came in, until everything of it is drawn."""
LONGEST_TURN_MS, LONGEST_FRAME_MS = 50, 8
IDLE_TURN_MS = 0.3
"""A turn that took less did nothing worth a median."""
BENCH = Path(__file__).resolve().parent / "bench.py"


class TurnMeter:
    """CPU time of each turn of the event loop, in milliseconds."""

    def __init__(self) -> None:
        from PySide6.QtCore import QAbstractEventDispatcher

        self.turns_ms: list[float] = []
        self._begun_s: float | None = None
        QAbstractEventDispatcher.instance().awake.connect(self._on_awake)

    def start(self) -> None:
        """Forget what was measured."""
        self.turns_ms.clear()
        self._begun_s = None

    def _on_awake(self) -> None:
        # Told once a turn, before what is posted is handed out; waiting takes no CPU time.
        now_s = time.thread_time()
        if self._begun_s is not None:
            self.turns_ms.append((now_s - self._begun_s) * 1e3)
        self._begun_s = now_s

    def figure(self, what: str) -> Figure:
        """Median of the turns in which something was done, and the longest."""
        busy_ms = [turn_ms for turn_ms in self.turns_ms if turn_ms >= IDLE_TURN_MS]
        return Figure.largest(what, busy_ms, LONGEST_TURN_MS)


class LagMeter:
    """How late a timer comes that should come every few milliseconds."""

    def __init__(self) -> None:
        from PySide6.QtCore import QElapsedTimer, Qt, QTimer

        self.late_ms: list[float] = []
        self._clock, self._ticker = QElapsedTimer(), QTimer()
        self._ticker.setTimerType(Qt.TimerType.PreciseTimer)
        self._ticker.setInterval(LAG_INTERVAL_MS)
        self._ticker.timeout.connect(self._on_tick)

    def start(self) -> None:
        """Begin."""
        self._clock.start()
        self._ticker.start()

    def stop(self) -> None:
        """End."""
        self._ticker.stop()

    def _on_tick(self) -> None:
        self.late_ms.append(max(self._clock.nsecsElapsed() / 1e6 - LAG_INTERVAL_MS, 0.0))
        self._clock.restart()


def run_once(
    application: "QApplication", child: str, recording: Path | None, begin: Callable[[], None]
) -> None:
    """Open a window on a child of the benchmark, run once, and close when all of it is drawn.

    Args:
        application: To run.
        child: Which worker.
        recording: What it replays.
        begin: Called when the run begins.
    """
    from PySide6.QtCore import Qt, QTimer

    window, store, session, worker = _open(child, recording)

    def start() -> None:
        begin()
        session.run()

    def stop_when_done(busy: bool) -> None:
        if not busy and store.state.runs:
            QTimer.singleShot(SETTLE_MS, application.quit)

    worker.busy_changed.connect(stop_when_done)
    window.first_painted.connect(session.start)
    # Not while the window still comes up.
    store.captured_changed.connect(
        lambda: QTimer.singleShot(SETTLE_MS, start), Qt.ConnectionType.SingleShotConnection
    )
    window.resize(1920, 1080)
    window.show()
    application.exec()
    session.close()
    window.close()


def _open(child: str, recording: Path | None) -> "tuple[MainWindow, Store, Session, WorkerProcess]":
    from explorer.ui.main_window import MainWindow
    from explorer.ui.session import Session
    from explorer.ui.store import Store
    from explorer.ui.worker_process import WorkerProcess

    command = [sys.executable, str(BENCH), "--child", child]
    if recording is not None:
        command.append(str(recording))
    store, worker = Store(), WorkerProcess(command, dict(os.environ))
    session = Session(store, worker)
    return MainWindow(store, session), store, session, worker


def time_flood(application: "QApplication") -> Figure:
    """How late a timer comes while a worker floods the window with messages."""
    lag = LagMeter()
    run_once(application, "flood", None, lag.start)
    lag.stop()
    what = f"event loop late while {N_MESSAGES:,} messages and a run come in"
    return Figure.largest(what, lag.late_ms, LONGEST_TURN_MS)


def time_arrivals(application: "QApplication", recording: Path | None, n_runs: int) -> Figure:
    """The longest turn while recorded runs come in one by one, as a worker sends them."""
    meter = TurnMeter()
    run_once(application, "replay", recording, meter.start)
    return meter.figure(f"event loop held up while {n_runs} runs come in, CPU time a turn")


def time_playing(run: "Run", size: tuple[int, int]) -> list[Figure]:
    """Frames and turns while a run plays once through in its ten seconds, changes included."""
    from PySide6.QtCore import QEventLoop, QTimer
    from PySide6.QtGui import QPaintEvent
    from typing_extensions import override

    from explorer.ui.scene_view import SceneView
    from explorer.ui.transport import Transport
    from explorer.ui.words import run_title

    frames_ms: list[float] = []

    class TimedScene(SceneView):
        """Notes the CPU time of every paint."""

        @override
        def paintEvent(self, event: QPaintEvent) -> None:
            begun_s = time.thread_time()
            super().paintEvent(event)
            frames_ms.append((time.thread_time() - begun_s) * 1e3)

    scene, transport, meter, loop = TimedScene(), Transport(), TurnMeter(), QEventLoop()
    transport.time_changed.connect(scene.set_time)
    transport.player.playing_changed.connect(lambda playing: None if playing else loop.quit())
    scene.resize(*size)
    scene.show()
    scene.set_runs((run,))
    transport.set_playback(scene.playback)
    QTimer.singleShot(SETTLE_MS, loop.quit)
    loop.exec()
    frames_ms.clear()
    meter.start()
    transport.player.play()
    loop.exec()
    scene.close()
    what = f"playing {run_title(run)} {size[0]}x{size[1]}"
    return [
        Figure.largest(f"{what}: a frame, CPU time", frames_ms, LONGEST_FRAME_MS),
        meter.figure(f"{what}: a turn, CPU time"),
    ]


def be_loading(recording: Path | None) -> int:
    """Open the window as the program does, and tell how late a timer was until it was complete."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from explorer.ui.app import Opening
    from explorer.ui.main_window import MainWindow, prepare_application
    from explorer.ui.store import Store

    application = QApplication([])
    prepare_application(application)
    store = Store()
    window, lag = MainWindow(store, complete=False), LagMeter()
    opening = Opening(window, store, recording)
    window.first_painted.connect(lag.start)
    window.first_painted.connect(opening.start)

    def stop_when_filled() -> None:
        if window.results.roofline.plot is not None:
            QTimer.singleShot(SETTLE_MS, application.quit)
            waiting.stop()

    waiting = QTimer(interval=100)
    waiting.timeout.connect(stop_when_filled)
    waiting.start()
    window.show()
    application.exec()
    opening.wait()
    sys.stdout.write(" ".join(f"{late:.2f}" for late in lag.late_ms) + "\n")
    return 0


def be_flood(recording: Path | None) -> int:
    """A worker that answers a run with very many progress messages, then runs."""
    from explorer.model.messages import Progress, RunFinished, Stage
    from tests.fixtures_runs import cpu_attention

    del recording

    def answer(strategies: Sequence[str], emit: "Callable[[Reply], None]") -> None:
        for i in range(N_MESSAGES):
            share = i / N_MESSAGES
            emit(
                Progress(
                    stage=Stage.TIMING, sentence=f"sample {i}", fraction=share, strategy="compile"
                )
            )
        for spec in strategies:
            run = cpu_attention(f"flood-{spec}")
            emit(RunFinished(run=replace(run, strategy=replace(run.strategy, name=spec))))

    return _serve(answer)


def be_replay(recording: Path | None) -> int:
    """A worker that sends recorded runs one by one, with progress between, as if it made them."""
    from explorer.model.messages import Progress, RunFinished, Stage
    from tools.bench import load_runs

    runs, _ = load_runs(recording)

    def answer(strategies: Sequence[str], emit: "Callable[[Reply], None]") -> None:
        del strategies
        for run in runs:
            for i in range(PROGRESS_PER_RUN):
                share = i / PROGRESS_PER_RUN
                emit(
                    Progress(
                        stage=Stage.TIMING, sentence=f"sample {i}", fraction=share,
                        strategy=run.strategy.spec,
                    )
                )  # fmt: skip
                threading.Event().wait(PROGRESS_INTERVAL_S)
            emit(RunFinished(run=run))

    return _serve(answer)


def _serve(answer: "Answer") -> int:
    """Speak the worker's protocol: the fake worker's answers, but for runs."""
    from explorer.model.messages import Ready, RequestDone, RunRequest
    from explorer.worker.protocol import decode_request
    from tests.ui import fake_worker

    fake_worker.emit(Ready(abilities=fake_worker.ABILITIES))
    for line in sys.stdin.buffer:
        request = decode_request(line)
        if isinstance(request, RunRequest):
            answer(request.strategies, fake_worker.emit)
            fake_worker.emit(RequestDone())
        else:
            fake_worker.answer(request)
    return 0
