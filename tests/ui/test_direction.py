"""Forward, or forward and backward: what changes with the direction, and what must not mix."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QImage, QPainter
from pytestqt.qtbot import QtBot

from explorer.chains.adam import ADAM
from explorer.model.run import Direction, Run
from explorer.ui.card_content import cards_of
from explorer.ui.direction_button import DirectionButton
from explorer.ui.plan_state import inductor_plan, plan_to_run
from explorer.ui.session import Session
from explorer.ui.state import no_backward_sentence, peers
from explorer.ui.store import Store
from explorer.ui.words import run_name, setting_text
from tests.fixtures_runs import CPU_GRAPH, compiled_attention, eager_attention
from tests.ui.conftest import MakeWorker
from tests.ui.drive import click, press
from tests.ui.graph_drive import capture

BOTH = Direction.FORWARD_BACKWARD
WAIT_MS = 10_000


def backward(run: Run) -> Run:
    """The same run as if it had gone forward and backward."""
    return replace(run, id=f"{run.id}-both", chain=replace(run.chain, direction=BOTH))


@pytest.fixture
def store() -> Store:
    return Store()


def test_another_direction_has_another_graph(store: Store) -> None:
    capture(store, CPU_GRAPH)
    store.set_direction(BOTH)
    assert store.state.direction is BOTH
    assert store.state.captured is None


def test_a_chain_that_does_not_train_stays_forward(store: Store) -> None:
    store.set_direction(BOTH)
    store.choose_chain("adam")
    assert store.state.direction is Direction.FORWARD
    store.set_direction(BOTH)
    assert store.state.direction is Direction.FORWARD
    notice = store.state.notice
    assert notice is not None
    assert notice.sentence == no_backward_sentence(ADAM)


def test_a_plan_of_one_direction_is_none_of_the_other(store: Store) -> None:
    capture(store, CPU_GRAPH)
    assert store.plan.set_link("scale", "mask", fused=True) is None
    forward = plan_to_run(store.state)
    assert forward is not None
    assert forward.text == "qk|scale+mask|softmax|dropout|pv"
    store.set_direction(BOTH)
    capture(store, CPU_GRAPH)
    both = plan_to_run(store.state)
    assert both is not None
    assert both.text == "qk|scale|mask|softmax|dropout|pv"
    assert store.plan.next_undo() is None
    store.set_direction(Direction.FORWARD)
    capture(store, CPU_GRAPH)
    assert plan_to_run(store.state) == forward


def test_a_link_of_a_run_forward_and_backward_plans_that_work(store: Store) -> None:
    store.add_runs([backward(compiled_attention())])
    store.plan.set_link("scale", "mask", fused=False)
    assert store.state.direction is BOTH
    assert store.state.plan_key in store.state.plans


def test_only_runs_of_one_direction_are_set_side_by_side(store: Store) -> None:
    runs = [eager_attention(), compiled_attention()]
    store.add_runs([*runs, *(backward(run) for run in runs)])
    assert [item.run.chain.direction for item in peers(store.state)] == [Direction.FORWARD] * 2
    store.show_run(store.state.runs[-1].key)
    assert [item.run.chain.direction for item in peers(store.state)] == [BOTH] * 2


def test_inductors_grouping_of_one_direction_is_none_of_the_other(store: Store) -> None:
    store.add_runs([compiled_attention(), backward(eager_attention())])
    assert inductor_plan(store.state) is not None
    store.show_run(store.state.runs[-1].key)
    assert inductor_plan(store.state) is None


def test_runs_cards_and_settings_say_the_direction() -> None:
    run = backward(compiled_attention())
    assert run_name(run) == "torch.compile · forward + backward"
    assert setting_text(run) == "2 × 16 × 4,096 × 64 · bf16 · forward + backward"
    assert run_name(compiled_attention()) == "torch.compile"
    assert cards_of(run, [backward(eager_attention()), run])[0].label == (
        "Speed-up, forward + backward"
    )


def test_the_button_switches_by_mouse_and_keyboard(qtbot: QtBot, store: Store) -> None:
    button = DirectionButton(store)
    qtbot.addWidget(button)
    click(button)
    assert store.state.direction is BOTH
    assert button.accessibleName() == "Direction of the next run: forward + backward"
    press(button, Qt.Key.Key_Space)
    assert store.state.direction is Direction.FORWARD


def test_the_button_says_why_it_is_off(qtbot: QtBot, store: Store) -> None:
    button = DirectionButton(store)
    qtbot.addWidget(button)
    store.choose_chain("adam")
    assert not button.isEnabled()
    assert button.accessibleDescription() == no_backward_sentence(ADAM)
    store.choose_chain("rmsnorm")
    assert button.isEnabled()


def test_a_graph_captured_for_the_other_direction_is_not_taken(
    qtbot: QtBot, store: Store, make_worker: MakeWorker
) -> None:
    session = Session(store, make_worker())
    session.start()
    qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
    taken: list[Direction] = []
    store.captured_changed.connect(
        lambda: taken.append(store.state.direction) if store.state.captured else None
    )
    store.set_parameter("heads", "2")
    session._capture()  # The request is on its way while the direction changes.
    store.set_direction(BOTH)
    qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
    session.close()
    assert taken == [BOTH]


def test_a_picture_names_the_direction(qtbot: QtBot) -> None:
    from explorer.ui.scene.draw import SceneOptions, draw
    from explorer.ui.theme import DARK

    def painted(run: Run) -> QImage:
        image = QImage(900, 500, QImage.Format.Format_RGB32)
        painter = QPainter(image)
        draw(painter, QRectF(image.rect()), (run,), 0.0, DARK, SceneOptions())
        painter.end()
        return image.copy(QRect(QPoint(0, 0), QPoint(899, 40)))

    assert painted(compiled_attention()) != painted(backward(compiled_attention()))
