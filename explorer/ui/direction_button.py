"""Beside the chain: whether the next run also measures the backward pass."""

from PySide6.QtWidgets import QPushButton, QWidget

from explorer.model.run import Direction
from explorer.ui.panel import wrapped
from explorer.ui.state import no_backward_sentence
from explorer.ui.store import Store
from explorer.ui.words import direction_words

ADD_BACKWARD = "+ backward"


class DirectionButton(QPushButton):
    """Pressed for forward + backward; off, with the reason, where a chain has no backward pass."""

    def __init__(self, store: Store, parent: QWidget | None = None) -> None:
        super().__init__(ADD_BACKWARD, parent)
        self._store = store
        self.setCheckable(True)
        self.clicked.connect(self._on_clicked)
        for signal in (store.chain_changed, store.direction_changed):
            signal.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        state = self._store.state
        chain = state.chain_descriptor
        self.setChecked(state.direction is not Direction.FORWARD)
        self.setEnabled(chain.trains)
        words = (
            "Pressed: the next run measures forward and backward as one, as a training step does"
            if chain.trains
            else no_backward_sentence(chain)
        )
        self.setToolTip(wrapped(words))
        self.setAccessibleName(f"Direction of the next run: {direction_words(state.direction)}")
        self.setAccessibleDescription(words)

    def _on_clicked(self, is_pressed: bool) -> None:
        wanted = Direction.FORWARD_BACKWARD if is_pressed else Direction.FORWARD
        self._store.set_direction(wanted)
        self._refresh()
