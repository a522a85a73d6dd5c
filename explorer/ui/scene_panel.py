"""The middle of the window: the traffic scene with its transport, tied to the store."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from explorer.model.playback import Slot
from explorer.ui.finding_line import FindingLine
from explorer.ui.scene_view import SceneView
from explorer.ui.store import Store
from explorer.ui.transport import Transport
from explorer.ui.turns import Turns

if TYPE_CHECKING:
    from explorer.model.run import Run


class ScenePanel(QWidget):
    """Shows the shown run, and the compared one beside it, at the store's playhead.

    The transport's player is the clock: while it runs it moves the store's playhead, and whoever
    else moves the playhead moves the player.

    Signals:
        ops_active: Names of the ops whose launch runs at the playhead, in the shown run.
    """

    ops_active = Signal(tuple)

    def __init__(
        self, store: Store, turns: Turns | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._runs: tuple[Run, ...] = ()
        self.scene = SceneView(turns=turns)
        self.finding = FindingLine(store, self)
        self.transport = Transport()
        self.transport.listen_to(self.scene)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.scene, 1)
        column.addWidget(self.finding)
        column.addWidget(self.transport)
        self.scene.set_theme(store.theme)
        self._connect()
        self._show_runs()

    def seek_launch(self, launch: int) -> None:
        """Pick a launch of the shown run and go to its start."""
        self._store.pick_launch(launch)
        self._seek_slot(0, launch)

    def seek_op(self, op: str) -> None:
        """Go to the start of the launch of the shown run that carries an op out."""
        shown = self._store.state.shown_run
        for index, launch in enumerate(shown.run.launches if shown else ()):
            if op in launch.ops and not launch.is_helper:
                self.seek_launch(index)
                return

    def _connect(self) -> None:
        store, transport = self._store, self.transport
        store.shown_changed.connect(self._show_runs)
        store.runs_changed.connect(self._show_runs)
        store.playhead_changed.connect(self._show_time)
        store.playing_changed.connect(self._play)
        store.theme_changed.connect(self.scene.set_theme)
        transport.time_changed.connect(store.set_playhead)
        transport.playing_changed.connect(store.set_playing)
        transport.slowdown_changed.connect(self._show_slowdown)
        self.scene.kernel_clicked.connect(self._on_kernel_clicked)

    def _show_runs(self) -> None:
        state = self._store.state
        items = [item for item in (state.shown_run, state.compared_run) if item is not None]
        runs = tuple(item.run for item in items)
        if runs == self._runs:
            return
        self._runs = runs
        time_us, playing = state.playhead_us, state.playing
        self.scene.set_runs(runs, recorded=tuple(item.is_recorded for item in items))
        self.transport.set_playback(self.scene.playback if runs else None)
        self._show_slowdown(self.transport.slowdown)
        # Both begin at the start; the moment and the motion are the store's to say.
        self.transport.seek(time_us)
        self._show_time(time_us)
        if playing:
            self.transport.player.play()

    def _show_time(self, time_us: float) -> None:
        self.transport.seek(time_us)
        self.scene.set_time(time_us)
        lanes = self.scene.playback.lanes
        under_way = [
            slot
            for slot in (lanes[0].slots if lanes else ())
            if slot.start_us <= time_us < slot.end_us
        ]
        self.ops_active.emit(tuple(op for slot in under_way for op in slot.launch.ops))

    def _show_slowdown(self, factor: float) -> None:
        self.scene.set_slowdown(factor or None)

    def _play(self, playing: bool) -> None:
        if playing:
            self.transport.player.play()
        else:
            self.transport.player.pause()

    def _on_kernel_clicked(self, lane: int, launch: int) -> None:
        if lane == 0:
            self.seek_launch(launch)
        else:
            self._seek_slot(lane, launch)

    def _seek_slot(self, lane: int, launch: int) -> None:
        slot = self._slot(lane, launch)
        if slot is not None:
            self._store.set_playhead(slot.start_us)

    def _slot(self, lane: int, launch: int) -> Slot | None:
        lanes = self.scene.playback.lanes
        slots = lanes[lane].slots if lane < len(lanes) else ()
        return next((slot for slot in slots if slot.index == launch), None)
