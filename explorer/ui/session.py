"""Joins the store and the worker: what the user wants becomes requests, replies become state."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer

from explorer.model.device import Abilities, Ceilings
from explorer.model.fusion import FusionPlan
from explorer.model.messages import (
    CeilingsMeasured,
    CeilingsRequest,
    GraphCaptured,
    GraphRequest,
    GroupingFound,
    GroupingRequest,
    Progress,
    Reply,
    RequestDone,
    RequestFailed,
    RunFinished,
    RunRequest,
    Stage,
)
from explorer.model.run import Run
from explorer.model.strategies import is_plan, is_plan_run, plan_text
from explorer.ui.examination import Examination
from explorer.ui.plan_state import (
    inductor_plan,
    plan_key,
    plan_to_run,
)
from explorer.ui.requests import (
    device_of,
    graph_request,
    grouping_request,
    is_of_choice,
    is_of_setting,
    run_request,
)
from explorer.ui.running_sweep import RunningSweep
from explorer.ui.state import WorkerPhase, run_blocker, wanted_strategies
from explorer.ui.store import Store
from explorer.ui.worker_process import WorkerProcess

SWEEP_TIMING_S = 0.3
"""Seconds spent timing each plan of a sweep: there may be 256."""
CAPTURE_DELAY_MS = 250
"""A setting that is being typed is captured when the typing pauses."""


class Session(QObject):
    """Carries out runs and keeps the op graph of the chosen chain up to date."""

    def __init__(self, store: Store, worker: WorkerProcess, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._worker = worker
        self._has_run = False
        self._is_capturing = False
        self._shows_next = False
        self._plan_to_show: str | None = None
        self._drawn_before: tuple[str, Mapping[str, FusionPlan]] = ("", {})
        self._sweep = RunningSweep(store)
        self.examination = Examination(worker, self)
        self._capture_timer = QTimer(self, interval=CAPTURE_DELAY_MS, singleShot=True)
        self._capture_timer.timeout.connect(self._capture)
        worker.starting.connect(self._update_phase)
        worker.ready.connect(self._on_ready)
        worker.reply.connect(self._on_reply)
        worker.busy_changed.connect(self._update_phase)
        worker.failed.connect(self._on_failed)
        store.parameters_changed.connect(self._capture_timer.start)
        store.device_changed.connect(self._update_phase)
        store.direction_changed.connect(self._capture_timer.start)
        store.sweep_requested.connect(self.sweep)
        store.param_sweep_requested.connect(self.sweep_parameter)
        store.cancel_requested.connect(self.cancel)

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
        wanted = wanted_strategies(state)
        plan = plan_to_run(state) if any(map(is_plan, wanted)) and state.planning else None
        # Who draws a plan and runs it wants to see it, whatever else is measured beside it.
        self._plan_to_show = plan.text if plan else None
        self._shows_next = plan is None or state.shown is None
        request = run_request(state, wanted)
        if state.chain_descriptor.compared is None:
            self._send_run(request)
            return
        from explorer.ui.param_sweep_state import compared_points

        variants = compared_points(state, request)
        self._send_points(variants, is_comparison=True) if variants else self._send_run(request)

    def sweep_parameter(self) -> None:
        """Measure the chosen strategies over a parameter; tells why if that cannot be."""
        # Imported when asked for: the window is on the screen sooner.
        from explorer.ui.param_sweep_state import param_sweep_blocker, swept_points

        state = self._store.state
        blocker = param_sweep_blocker(state)
        if blocker is not None:
            self._store.tell(blocker)
            return
        self._plan_to_show = None
        self._shows_next = True
        request = run_request(state, wanted_strategies(state))
        self._send_points(swept_points(state, request), is_comparison=False)

    def _send_points(self, requests: Sequence[RunRequest], *, is_comparison: bool) -> None:
        self._send_run(self._sweep.begin_points(requests, is_comparison=is_comparison))
        self._sweep.show_progress()

    def sweep(self) -> None:
        """Measure every plan of the chosen setting that has no run; tells why if that cannot be."""
        # Imported when asked for: the window is on the screen sooner.
        from explorer.ui.sweep_state import is_in_setting, sweep_blocker, sweep_specs

        state = self._store.state
        blocker = sweep_blocker(state)
        if blocker is not None:
            self._store.tell(blocker)
            return
        self._plan_to_show = None
        shown = state.shown_run
        self._shows_next = shown is None or not is_in_setting(state, shown.run)
        request = run_request(state, sweep_specs(state), SWEEP_TIMING_S)
        self._send_run(self._sweep.begin_plans(request))
        self._sweep.show_progress()

    def _send_run(self, request: RunRequest) -> None:
        self._has_run = True
        self._drawn_before = self._drawn
        self._store.dismiss_notice()
        self._store.set_progress(Progress(stage=Stage.STARTING, sentence="Waiting for the worker"))
        self._worker.send(request)
        self._update_phase()

    def ask_inductor(self) -> None:
        """Take Inductor's own grouping as the plan, from a run if there is one, else by asking."""
        state = self._store.state
        known = inductor_plan(state)
        if known is not None:
            self._store.plan.edit(known)
        elif state.parameters.errors:
            self._store.tell(next(iter(state.parameters.errors.values())))
        elif not state.asking:
            self._store.plan.set_asking(True)
            self._worker.send(grouping_request(state))

    def cancel(self) -> None:
        """Give up the run; what it has finished stays in the list."""
        if not self._has_run:
            self.cancel_asking()
            return
        self._has_run = False
        self._store.set_progress(None)
        self._store.plan.set_asking(False)
        self._worker.cancel()
        self._update_phase()
        done = self._sweep.drop() or "strategies that were done are in the list."
        self._store.tell(f"Cancelled; {done}", is_error=False)

    def cancel_asking(self) -> None:
        """Let Inductor be; the plan stays as it is."""
        if self._store.state.asking:
            self._store.plan.set_asking(False)
            self._worker.cancel()
            self._update_phase()

    def measure_ceilings(self) -> None:
        """Measure what the device reaches afresh."""
        if self._has_run:
            self._store.tell("A run is in progress; measure the ceilings when it is done.")
            return
        self._has_run = True
        self._worker.send(CeilingsRequest(device=device_of(self._store.state), force=True))
        self._update_phase()

    def close(self) -> None:
        """End the worker and everything it started, within three seconds."""
        self._capture_timer.stop()
        self._worker.close()

    @property
    def _drawn(self) -> tuple[str, Mapping[str, FusionPlan]]:
        """The chosen work and the plans drawn so far."""
        return self._store.state.plan_key, self._store.state.plans

    def _capture(self) -> None:
        state = self._store.state
        is_idle = self._worker.is_ready and not self._worker.is_busy
        if state.captured is not None or state.capture_failure:
            return
        if is_idle and not state.parameters.errors:
            self._is_capturing = True
            self._worker.send(graph_request(state))

    def _on_ready(self, abilities: Abilities) -> None:
        self._is_capturing = False
        self._store.set_abilities(abilities)
        self._update_phase()
        for sentence in abilities.warnings[:1]:
            self._store.tell(sentence, is_error=False)

    def _on_reply(self, reply: Reply) -> None:
        current = self._worker.current
        if self.examination.take(reply):
            return
        if isinstance(current, GroupingRequest):
            self._on_grouping_reply(reply, current)
            return
        is_capture = isinstance(current, GraphRequest)
        if is_capture and isinstance(reply, RequestDone):
            self._is_capturing = False
        if isinstance(reply, Progress):
            if not is_capture and not self._sweep.show_progress(reply):
                self._store.set_progress(reply)
        elif isinstance(reply, GraphCaptured):
            self._take_graph(reply)
        elif isinstance(reply, RunFinished):
            self._take_run(reply.run)
            if reply.run.error is not None:
                self._store.tell(f"{reply.run.strategy.spec}: {reply.run.error}")
        elif isinstance(reply, CeilingsMeasured):
            self._take_ceilings(reply.device, reply.ceilings)
        elif isinstance(reply, RequestFailed):
            if isinstance(current, GraphRequest) and is_of_choice(self._store.state, current):
                # Not tried over and over: it waits for another choice.
                self._store.set_captured(None, reply.sentence)
            else:
                self._sweep.keep_refused(reply.sentence)
            self._store.tell(reply.sentence)
        elif isinstance(reply, RequestDone) and not is_capture and not self._send_next_point():
            self._sweep.end()
            self._has_run = False
            self._store.set_progress(None)
            self._update_phase()

    def _send_next_point(self) -> bool:
        """Send the next point of a parameter sweep; false where there is none."""
        request = self._sweep.next_request()
        if request is None:
            return False
        self._worker.send(request)
        self._sweep.show_progress()
        return True

    def _take_run(self, run: Run) -> None:
        self._sweep.take(run)
        is_drawn = is_plan_run(run) and plan_text(run) == self._plan_to_show
        # What was chosen or drawn while this was measured is not taken out of sight.
        is_elsewhere = self._store.state.planning and self._drawn != self._drawn_before
        show = self._shows_next or (is_drawn and not is_elsewhere)
        self._store.add_runs([run], show=show)
        if is_elsewhere:
            self._store.plan.go_on()
        self._shows_next = self._shows_next and not run.launches

    def _on_grouping_reply(self, reply: Reply, request: GroupingRequest) -> None:
        """Inductor's answer is taken; while it is compiling, nothing is said of it elsewhere."""
        if isinstance(reply, GroupingFound):
            if plan_key(request.chain, request.direction) == self._store.state.plan_key:
                self._store.plan.take_grouping(reply)
        elif isinstance(reply, RequestFailed):
            self._store.tell(reply.sentence)
        elif isinstance(reply, RequestDone):
            self._store.plan.set_asking(False)
            self._update_phase()

    def _take_graph(self, captured: GraphCaptured) -> None:
        state, request = self._store.state, self._worker.current
        if not isinstance(request, GraphRequest):
            return
        if is_of_choice(state, request) and is_of_setting(state, captured):
            self._store.set_captured(captured)
        else:
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
        if self._is_capturing:
            # The next worker would end in the same way, and so on for ever.
            self._is_capturing = False
            self._store.set_captured(None, sentence)
        rest = self._sweep.go_on(sentence)
        if rest is not None:
            self._sweep.show_progress()
            self._worker.send(rest)
            return
        self._has_run = False
        self._sweep.drop()
        self._store.plan.set_asking(False)
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
        elif worker.is_running or store.state.worker.phase is not WorkerPhase.FAILED:
            store.set_worker(WorkerPhase.STARTING, "worker starting")
