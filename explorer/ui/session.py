"""Joins the store and the worker: what the user wants becomes requests, replies become state."""

from dataclasses import replace

from PySide6.QtCore import QObject, QTimer

from explorer.model.device import Abilities, Ceilings
from explorer.model.messages import (
    CeilingsMeasured,
    CeilingsRequest,
    GraphCaptured,
    GraphRequest,
    Progress,
    Reply,
    RequestDone,
    RequestFailed,
    RunFinished,
    RunRequest,
    Stage,
)
from explorer.model.run import Scalar
from explorer.ui.state import WorkerPhase, run_blocker, wanted_strategies
from explorer.ui.store import Store
from explorer.ui.worker_process import WorkerProcess

CAPTURE_DELAY_MS = 250
"""A setting that is being typed is captured when the typing pauses."""


class Session(QObject):
    """Carries out runs and keeps the op graph of the chosen chain up to date."""

    def __init__(self, store: Store, worker: WorkerProcess, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._worker = worker
        self._has_run = False
        self._shows_next = False
        self._capture_timer = QTimer(self, interval=CAPTURE_DELAY_MS, singleShot=True)
        self._capture_timer.timeout.connect(self._capture)
        worker.starting.connect(self._update_phase)
        worker.ready.connect(self._on_ready)
        worker.reply.connect(self._on_reply)
        worker.busy_changed.connect(self._update_phase)
        worker.failed.connect(self._on_failed)
        store.parameters_changed.connect(self._capture_timer.start)
        store.device_changed.connect(self._update_phase)

    def start(self) -> None:
        """Have a worker warm, so that the first run need not wait for torch's import."""
        self._worker.start()

    def run(self) -> None:
        """Measure the chosen strategies; tells why if that cannot be."""
        state = self._store.state
        blocker = run_blocker(state)
        if blocker is not None:
            self._store.tell(blocker)
            return
        self._store.dismiss_notice()
        self._has_run = self._shows_next = True
        self._store.set_progress(Progress(stage=Stage.STARTING, sentence="Waiting for the worker"))
        self._worker.send(
            RunRequest(
                chain=state.chain,
                parameters=dict(state.parameters.values) if self._knows_device else self._typed(),
                strategies=wanted_strategies(state),
                device=self._device,
            )
        )
        self._update_phase()

    def cancel(self) -> None:
        """Give up the run; what it has finished stays in the list."""
        if not self._has_run:
            return
        self._has_run = False
        self._store.set_progress(None)
        self._worker.cancel()
        self._update_phase()
        self._store.tell("Cancelled; strategies that were done are in the list.", is_error=False)

    def measure_ceilings(self) -> None:
        """Measure what the device reaches afresh."""
        if self._has_run:
            self._store.tell("A run is in progress; measure the ceilings when it is done.")
            return
        self._has_run = True
        self._worker.send(CeilingsRequest(device=self._device, force=True))
        self._update_phase()

    def close(self) -> None:
        """End the worker and everything it started, within three seconds."""
        self._capture_timer.stop()
        self._worker.close()

    @property
    def _device(self) -> str:
        state = self._store.state
        return state.device or (state.abilities.default_device if state.abilities else "auto")

    @property
    def _knows_device(self) -> bool:
        return self._store.state.chosen_device is not None

    def _typed(self) -> dict[str, Scalar]:
        """Only what was typed: the worker knows its device and so the defaults."""
        parameters = self._store.state.parameters
        return {name: parameters.values[name] for name in parameters.texts}

    def _capture(self) -> None:
        state = self._store.state
        is_idle = self._worker.is_ready and not self._worker.is_busy
        if state.captured is None and is_idle and not state.parameters.errors:
            self._worker.send(
                GraphRequest(
                    chain=state.chain,
                    parameters=dict(state.parameters.values),
                    device=self._device,
                )
            )

    def _on_ready(self, abilities: Abilities) -> None:
        self._store.set_abilities(abilities)
        self._update_phase()
        for sentence in abilities.warnings[:1]:
            self._store.tell(sentence, is_error=False)

    def _on_reply(self, reply: Reply) -> None:
        is_capture = isinstance(self._worker.current, GraphRequest)
        if isinstance(reply, Progress):
            if not is_capture:
                self._store.set_progress(reply)
        elif isinstance(reply, GraphCaptured):
            self._take_graph(reply)
        elif isinstance(reply, RunFinished):
            self._store.add_runs([reply.run], show=self._shows_next)
            self._shows_next = self._shows_next and not reply.run.launches
            if reply.run.error is not None:
                self._store.tell(f"{reply.run.strategy.spec}: {reply.run.error}")
        elif isinstance(reply, CeilingsMeasured):
            self._take_ceilings(reply.device, reply.ceilings)
        elif isinstance(reply, RequestFailed):
            self._store.tell(reply.sentence)
        elif isinstance(reply, RequestDone) and not is_capture:
            self._has_run = False
            self._store.set_progress(None)
            self._update_phase()

    def _take_graph(self, captured: GraphCaptured) -> None:
        values = self._store.state.parameters.values
        if captured.parameters == values and captured.device == self._device:
            self._store.set_captured(captured)
        elif isinstance(self._worker.current, GraphRequest):
            self._capture_timer.start()

    def _take_ceilings(self, device_id: str, ceilings: Ceilings) -> None:
        abilities = self._store.state.abilities
        if abilities is None:
            return
        devices = tuple(
            replace(ability, device=replace(ability.device, ceilings=ceilings))
            if ability.device.id == device_id
            else ability
            for ability in abilities.devices
        )
        self._store.set_abilities(replace(abilities, devices=devices))

    def _on_failed(self, sentence: str) -> None:
        self._has_run = False
        self._store.set_progress(None)
        self._store.set_worker(WorkerPhase.FAILED, "worker failed")
        self._store.tell(sentence)

    def _update_phase(self) -> None:
        worker, store = self._worker, self._store
        if self._has_run:
            store.set_worker(WorkerPhase.BUSY, "measuring")
        elif worker.is_ready:
            store.set_worker(WorkerPhase.READY, "worker ready")
            if not worker.is_busy:
                self._capture_timer.start()
        elif worker.is_running:
            store.set_worker(WorkerPhase.STARTING, "worker starting")
        elif store.state.worker.phase is not WorkerPhase.FAILED:
            store.set_worker(WorkerPhase.STARTING, "worker restarting")
