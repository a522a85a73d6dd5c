"""The explanation over the op graph: its size, its keys, and what is typed beside it."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from explorer.model.messages import GroupingFound
from explorer.ui.graph_panel import GraphPanel
from explorer.ui.store import Store
from tests.fixtures_runs import GPU_GRAPH
from tests.ui.drive import click, press, write
from tests.ui.graph_drive import KEY, branched, capture, focus, link, plan, show

LONG = " ".join(["residual and normalize cannot share a kernel without those in between;"] * 4)


@pytest.fixture
def store() -> Store:
    return Store()


class Frame(QWidget):
    """A window in which Escape cancels something, round a panel."""

    def __init__(self, panel: GraphPanel) -> None:
        super().__init__()
        self.cancelled = 0
        QVBoxLayout(self).addWidget(panel)
        QShortcut(QKeySequence("Esc"), self).activated.connect(self._cancel)

    def _cancel(self) -> None:
        self.cancelled += 1


@pytest.fixture
def framed(qtbot: QtBot, store: Store) -> tuple[Frame, GraphPanel]:
    panel = branched(qtbot, store)
    frame = Frame(panel)
    qtbot.addWidget(frame)
    frame.resize(340, 520)
    frame.show()
    frame.activateWindow()
    return frame, panel


def test_the_whole_sentence_is_seen_though_it_was_laid_out_before(
    qtbot: QtBot, store: Store
) -> None:
    panel = branched(qtbot, store)
    # Takes the layouts of what is hidden along.
    panel.grab()
    place = panel.view.rect_between("residual", "normalize")
    for sentence, remedy in (("Short.", ""), (LONG, "Cure"), ("Short.", ""), (LONG, "")):
        panel.callout.explain(sentence, place, remedy=remedy)
        words = panel.callout.findChild(QWidget, "calloutText")
        assert words is not None
        assert words.height() >= words.heightForWidth(words.width())
        button = panel.callout.remedy_button
        assert not remedy or panel.callout.rect().contains(button.geometry())
        panel.callout.close_it()
        panel.grab()


def test_escape_closes_it_and_cancels_nothing(framed: tuple[Frame, GraphPanel]) -> None:
    frame, panel = framed
    view = focus(panel)
    click(view, link(view, "residual", "normalize"))
    assert panel.callout.isVisible()
    press(view, KEY.Key_Escape)
    assert not panel.callout.isVisible()
    assert frame.cancelled == 0
    press(view, KEY.Key_Escape)
    assert frame.cancelled == 1


def test_the_keyboard_comes_to_the_remedy_first_and_goes_back(
    framed: tuple[Frame, GraphPanel],
) -> None:
    _, panel = framed
    view = focus(panel)
    click(view, link(view, "residual", "normalize"))
    press(view, KEY.Key_Tab)
    assert isinstance(QApplication.focusWidget(), QPushButton)
    assert QApplication.focusWidget() is panel.callout.remedy_button
    press(panel.callout.remedy_button, KEY.Key_Escape)
    assert QApplication.focusWidget() is view


def test_escape_gives_up_what_is_typed_and_cancels_nothing(
    framed: tuple[Frame, GraphPanel],
) -> None:
    frame, panel = framed
    field = panel.text.field
    before = field.text()
    field.setFocus(Qt.FocusReason.TabFocusReason)
    write(field, "residual+foo")
    press(field, KEY.Key_Return)
    assert panel.callout.isVisible()
    press(field, KEY.Key_Escape)
    assert field.text() == before
    assert field.property("invalid") is False
    assert not panel.callout.isVisible()
    assert frame.cancelled == 0


def test_what_is_being_typed_stays_when_something_else_changes(
    framed: tuple[Frame, GraphPanel], store: Store
) -> None:
    _, panel = framed
    field = panel.text.field
    field.setFocus(Qt.FocusReason.TabFocusReason)
    write(field, "residual+squ")
    store.runs_changed.emit()
    assert field.text() == "residual+squ"
    write(field, "are")
    press(field, KEY.Key_Return)
    assert plan(store).startswith("residual+square|mean")
    assert field.text() == plan(store)


def test_presets_can_be_pasted_by_name(qtbot: QtBot, store: Store) -> None:
    capture(store, GPU_GRAPH)
    panel = show(qtbot, store)
    with qtbot.waitSignal(panel.inductor_requested, timeout=1000):
        panel.take_text("'plan:inductor'")
    panel.take_text("plan:*")
    assert panel.callout.sentence == "plan:* is every plan; the tab Sweep runs them."
    panel.take_text("plan:all")
    assert plan(store) == "qk+scale+mask+softmax+dropout+pv"


def test_every_preset_that_the_plan_is_is_marked(qtbot: QtBot, store: Store) -> None:
    capture(store, GPU_GRAPH)
    panel = show(qtbot, store)
    whole = "+".join(op.name for op in GPU_GRAPH.ops)
    store.plan.take_grouping(
        GroupingFound(chain="attention", parameters={}, device="cpu", plan=whole)
    )
    marked = [panel.presets.each, panel.presets.inductor, panel.presets.whole]
    assert [button.isChecked() for button in marked] == [False, True, True]
