"""The one place where the window's state lives and changes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, Signal

from explorer.chains import find_chain
from explorer.chains.own import canonical, chain_of, read_name
from explorer.model.device import Abilities
from explorer.model.messages import GraphCaptured, Progress
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Run
from explorer.model.sharing import Sharing
from explorer.ui.plan_history import RemovalStep
from explorer.ui.plan_store import PlanEditing, kept
from explorer.ui.state import (
    Notice,
    SessionRun,
    State,
    WorkerPhase,
    WorkerState,
    check_parameters,
    no_backward_sentence,
    refused_choice,
    with_device,
)
from explorer.ui.theme import THEMES, Theme
from explorer.ui.words import run_name


class Store(QObject):
    """Holds one frozen :class:`State`; methods replace it and tell which part changed.

    A view connects to the signals of the parts that it shows and reads :attr:`state`. A method
    that changes nothing emits nothing.

    Signals:
        chain_changed: Another chain was picked.
        direction_changed: Forward alone, or forward and backward, was picked.
        parameters_changed: A setting was typed, or its defaults changed with the device.
        strategies_changed: A strategy was toggled.
        device_changed: Another device was picked.
        runs_changed: The list of runs, a name or a pin changed.
        shown_changed: Another run is shown or compared.
        launch_changed: Another launch of the shown run was picked, or none is any more.
        playhead_changed: The moment shown, in microseconds.
        playing_changed: Whether it moves by itself.
        theme_changed: The new theme.
        worker_changed: The worker's phase or its sentence changed.
        progress_changed: A request moved on, began or ended.
        abilities_changed: The worker said what it can do.
        captured_changed: The chosen chain's op graph arrived or went.
        notice_changed: The message bar has something to say, or nothing more.
        plan_changed: The fusion plan, or whether the op graph shows it, changed.
        sweep_requested: Every plan of the chosen chain is to be run.
        swept_changed: Another parameter is to be swept, or over other values.
        param_sweep_requested: That sweep is to be run.
        cancel_requested: What is being run is to be given up.
        own_requested: Own code is to be opened, if the user agrees: its name and how it is called.
    """

    chain_changed = Signal()
    direction_changed = Signal()
    parameters_changed = Signal()
    strategies_changed = Signal()
    device_changed = Signal()
    runs_changed = Signal()
    shown_changed = Signal()
    launch_changed = Signal()
    playhead_changed = Signal(float)
    playing_changed = Signal(bool)
    theme_changed = Signal(object)
    worker_changed = Signal()
    progress_changed = Signal()
    abilities_changed = Signal()
    captured_changed = Signal()
    notice_changed = Signal()
    plan_changed = Signal()
    sweep_requested = Signal()
    swept_changed = Signal()
    param_sweep_requested = Signal()
    cancel_requested = Signal()
    own_requested = Signal(str, object)

    def __init__(self, state: State | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state = state or State()
        self._sharing = Sharing()
        self.plan = PlanEditing(self)
        self._check_parameters()

    @property
    def state(self) -> State:
        """The state as it is now."""
        return self._state

    @property
    def theme(self) -> Theme:
        """The theme as it is now."""
        return THEMES[self._state.theme]

    # What the next run measures.

    def choose_chain(self, chain_id: str) -> None:
        """Pick a chain; settings go back to its defaults, its graph is not known yet.

        Raises:
            UsageError: There is no such chain.
        """
        find_chain(chain_id)
        if chain_id != self._state.chain:
            self._choose(chain_id, None)

    def open_own(self, chain: str, own: OwnCode) -> None:
        """Pick somebody's own code, which the worker runs from now on: the user must have agreed.

        Opened once more it is captured anew, since the file may have changed.

        Args:
            chain: ``file.py:function`` or ``package.module:Class``.
            own: How it is called.

        Raises:
            UsageError: The name is none, or a text cannot be read.
        """
        read_name(chain)
        self._choose(chain, canonical(own))

    def _choose(self, chain: str, own: OwnCode | None) -> None:
        before = self._state.direction
        direction = before if chain_of(chain, own).trains else Direction.FORWARD
        changes = kept(self._state, chain, direction)
        self._set(chain=chain, own=own, direction=direction, captured=None, **changes)
        self._set(swept=None, swept_texts={})
        self._check_parameters({})
        self.chain_changed.emit()
        if direction is not before:
            self.direction_changed.emit()
        self.parameters_changed.emit()
        self.captured_changed.emit()
        self.strategies_changed.emit()
        self.plan_changed.emit()
        self.swept_changed.emit()

    def set_direction(self, direction: Direction) -> None:
        """Pick what the next run measures; a chain that does not train has forward alone."""
        state = self._state
        if direction is state.direction:
            return
        if direction is not Direction.FORWARD and not state.chain_descriptor.trains:
            self.tell(no_backward_sentence(state.chain_descriptor))
            return
        self._set(direction=direction, captured=None, **kept(state, state.chain, direction))
        self.direction_changed.emit()
        self.captured_changed.emit()
        self.strategies_changed.emit()
        self.plan_changed.emit()

    def set_parameter(self, name: str, text: str) -> None:
        """Take what was typed, valid or not; an empty text means the default.

        A choice that the device does not have is refused, and told.
        """
        reason = refused_choice(self._state, name, text)
        if reason:
            self.tell(reason)
            # Whoever showed it goes back to what counts.
            self.parameters_changed.emit()
            return
        texts = dict(self._state.parameters.texts)
        if text.strip():
            texts[name] = text
        else:
            texts.pop(name, None)
        self._replace_texts(texts)

    def choose_swept(self, name: str) -> None:
        """Pick the parameter that a sweep goes over."""
        if name != self._state.swept:
            self._set(swept=name)
            self.swept_changed.emit()

    def set_swept_text(self, name: str, text: str) -> None:
        """Take what was typed as a sweep's values; an empty text means what is suggested."""
        texts = {k: v for k, v in self._state.swept_texts.items() if k != name}
        if text.strip():
            texts[name] = text.strip()
        if texts != self._state.swept_texts:
            self._set(swept_texts=texts)
            self.swept_changed.emit()

    def request_param_sweep(self, name: str) -> None:
        """Have a parameter swept over the values that were typed or are suggested."""
        self.choose_swept(name)
        self.param_sweep_requested.emit()

    def reset_parameters(self) -> None:
        """Go back to the device's defaults."""
        self._replace_texts({})

    def toggle_strategy(self, spec: str, on: bool) -> None:
        """Say whether the next run measures a strategy."""
        strategies = tuple(s for s in self._state.strategies if s != spec)
        if on:
            strategies = (*strategies, spec)
        if set(strategies) != set(self._state.strategies):
            self._set(strategies=strategies)
            self.strategies_changed.emit()

    def choose_device(self, device_id: str) -> None:
        """Pick the device of the next run; defaults follow its kind."""
        if device_id == self._state.device:
            return
        self._set(device=device_id, captured=None)
        self._check_parameters()
        self.device_changed.emit()
        self.parameters_changed.emit()
        self.captured_changed.emit()

    # The session's runs.

    def add_runs(
        self, runs: Sequence[Run], recorded_in: str | None = None, show: bool = True
    ) -> None:
        """Put runs at the end of the list; a run that is there already is not doubled.

        Args:
            runs: In the order they were made.
            recorded_in: The file they come from, None if measured just now.
            show: Show the first of them that has launches, or what is there already.
        """
        known = {item.key: item for item in self._state.runs}
        candidates: list[SessionRun] = []
        added: list[SessionRun] = []
        for run in runs:
            twin = next((i for i in known.values() if i.run == run), None)
            if twin is None:
                key = _free_key(run.id, known)
                run = self._sharing.shared(run)  # noqa: PLW2901 - the same, in less memory
                twin = SessionRun(key=key, run=run, name=run_name(run), recorded_in=recorded_in)
                known[key] = twin
                added.append(twin)
            candidates.append(twin)
        if added:
            self._set(runs=(*self._state.runs, *added))
            self.runs_changed.emit()
        drawable = [item for item in candidates if item.run.launches]
        if show and drawable:
            compared = self._state.compared_run
            if compared is not None and compared.run.chain.name != drawable[0].run.chain.name:
                # Beside another chain it was looked at no longer.
                self.compare_run(None)
            self.show_run(drawable[0].key)

    def rename_run(self, key: str, name: str) -> None:
        """Give a run a name; an empty one is not taken. The name is saved with the run."""
        name = name.strip()
        item = self._state.find_run(key)
        if item is None or not name or name == item.name:
            return
        self._replace_run(replace(item, name=name, run=replace(item.run, label=name)))

    def pin_run(self, key: str, pinned: bool) -> None:
        """Keep a run in the timelines whatever is shown, or no longer."""
        item = self._state.find_run(key)
        if item is not None and item.pinned != pinned:
            self._replace_run(replace(item, pinned=pinned))

    def remove_run(self, key: str) -> None:
        """Take a run out of the list; :meth:`undo` brings it back."""
        item = self._state.find_run(key)
        if item is None:
            return
        self.plan.removed(self._state.runs.index(item), item)
        self.take_off(key)

    def take_off(self, key: str) -> None:
        """Take a run out of the list, without remembering that it was there."""
        item = self._state.find_run(key)
        if item is None:
            return
        place = self._state.runs.index(item)
        rest = tuple(other for other in self._state.runs if other.key != key)
        compared = None if self._state.compared == key else self._state.compared
        shown, was_shown = self._state.shown, self._state.shown == key
        if was_shown:
            drawable = [other for other in rest if other.run.launches and other.key != compared]
            shown = drawable[min(place, len(drawable) - 1)].key if drawable else None
        launch = None if was_shown else self._state.launch
        self._set(runs=rest, shown=shown, compared=compared, launch=launch)
        self.runs_changed.emit()
        if was_shown:
            self.set_playhead(0.0)
        self.shown_changed.emit()
        self.tell(f"{item.name} was taken off the list.", is_error=False, can_undo=True)

    def bring_back(self, step: RemovalStep) -> None:
        """Put a run where it was before it was taken off the list."""
        item, runs = step.item, list(self._state.runs)
        runs.insert(min(step.place, len(runs)), item)
        self._set(runs=tuple(runs))
        self.runs_changed.emit()
        self.dismiss_notice()
        if self._state.shown is None and item.run.launches:
            self.show_run(item.key)

    def undo_remove(self) -> None:
        """Bring back the run that was taken out last, where it was."""
        self.plan.undo_removal()

    @property
    def can_undo(self) -> bool:
        """Whether a removed run can be brought back."""
        return self.plan.history.last_removal() is not None

    def show_run(self, key: str) -> None:
        """Show a run; the playhead goes to its start, and the op graph shows it too."""
        if key == self._state.shown and self._state.planning:
            self._set(planning=False)
            self.plan_changed.emit()
        if key == self._state.shown or self._state.find_run(key) is None:
            return
        compared = None if self._state.compared == key else self._state.compared
        self._set(shown=key, compared=compared, launch=None, planning=False)
        self.set_playhead(0.0)
        self.shown_changed.emit()

    def compare_run(self, key: str | None) -> None:
        """Show a run beside the shown one, on the same clock; None for none."""
        if key == self._state.compared or (key is not None and key == self._state.shown):
            return
        self._set(compared=key if self._state.find_run(key) else None)
        self.shown_changed.emit()

    # Time and looks.

    def pick_launch(self, launch: int | None) -> None:
        """Pick a launch of the shown run, for every view that shows launches."""
        if launch != self._state.launch:
            self._set(launch=launch)
            self.launch_changed.emit()

    def set_playhead(self, playhead_us: float) -> None:
        """Move to a moment, in the shown run's own time."""
        if playhead_us != self._state.playhead_us:
            self._set(playhead_us=playhead_us)
            self.playhead_changed.emit(playhead_us)

    def set_playing(self, playing: bool) -> None:
        """Let the playhead move by itself, or stop it."""
        if playing != self._state.playing:
            self._set(playing=playing)
            self.playing_changed.emit(playing)

    def set_theme(self, name: str) -> None:
        """Change colours (a key of ``THEMES``)."""
        if name in THEMES and name != self._state.theme:
            self._set(theme=name)
            self.theme_changed.emit(THEMES[name])

    # What the worker says.

    def set_worker(self, phase: WorkerPhase, sentence: str) -> None:
        """Take the worker's phase."""
        worker = WorkerState(phase=phase, sentence=sentence)
        if worker != self._state.worker:
            self._set(worker=worker)
            self.worker_changed.emit()

    def set_progress(self, progress: Progress | None) -> None:
        """Take where the request stands; None when it is over."""
        if progress != self._state.progress:
            self._set(progress=progress)
            self.progress_changed.emit()

    def set_abilities(self, abilities: Abilities) -> None:
        """Take what the worker can do; a chosen device that it lacks is let go."""
        known = {ability.device.id for ability in abilities.devices}
        device = self._state.device if self._state.device in known else None
        self._set(abilities=abilities, device=device)
        self._check_parameters()
        self.abilities_changed.emit()
        self.parameters_changed.emit()

    def set_captured(self, captured: GraphCaptured | None, failure: str = "") -> None:
        """Take the chosen chain's op graph, or why there is none."""
        state = self._state
        if (captured, failure) != (state.captured, state.capture_failure):
            self._set(captured=captured, capture_failure=failure)
            self.captured_changed.emit()

    def tell(self, sentence: str, *, is_error: bool = True, can_undo: bool = False) -> None:
        """Put one sentence into the message bar."""
        self._set(notice=Notice(sentence=sentence, is_error=is_error, can_undo=can_undo))
        self.notice_changed.emit()

    def dismiss_notice(self) -> None:
        """Empty the message bar."""
        if self._state.notice is not None:
            self._set(notice=None)
            self.notice_changed.emit()

    def change(self, **changes: Any) -> None:
        """Replace parts of the state and tell nobody: for the parts of the store alone."""
        self._set(**changes)

    def _set(self, **changes: Any) -> None:
        if "captured" in changes:
            # Whatever could not be captured was something else.
            changes.setdefault("capture_failure", "")
        self._state = replace(self._state, **changes)

    def _check_parameters(self, texts: dict[str, str] | None = None) -> None:
        state = self._state
        checked = check_parameters(
            state.chain_descriptor,
            state.parameters.texts if texts is None else texts,
            state.device_kind,
        )
        self._set(parameters=with_device(state, checked))

    def _replace_texts(self, texts: dict[str, str]) -> None:
        if texts == self._state.parameters.texts:
            return
        before = self._state.parameters.values
        self._check_parameters(texts)
        self.parameters_changed.emit()
        if before != self._state.parameters.values:
            self.set_captured(None)

    def _replace_run(self, changed: SessionRun) -> None:
        runs = tuple(changed if item.key == changed.key else item for item in self._state.runs)
        self._set(runs=runs)
        self.runs_changed.emit()


def _free_key(wanted: str, taken: dict[str, SessionRun]) -> str:
    key, number = wanted, 2
    while key in taken:
        key, number = f"{wanted}#{number}", number + 1
    return key
