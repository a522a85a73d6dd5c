"""Work spread over turns of the event loop."""

from functools import partial

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from explorer.ui.preload import Preload
from explorer.ui.turns import Turns


@pytest.fixture
def turns(qtbot: QtBot) -> Turns:
    return Turns()


def test_each_piece_has_a_turn_of_its_own(qtbot: QtBot, turns: Turns) -> None:
    done: list[str] = []
    for name in ("first", "second"):
        turns.soon(name, partial(done.append, name))
    # A timer of no length comes once a turn.
    ticks: list[int] = []
    ticker = QTimer(interval=0)
    ticker.timeout.connect(lambda: ticks.append(len(done)))
    ticker.start()
    assert done == []
    qtbot.waitUntil(lambda: turns.is_idle and len(ticks) > 6)
    ticker.stop()
    assert done == ["first", "second"]
    # Between the two there was a turn in which nothing was done: what changed can be painted.
    assert ticks.count(1) >= 2


def test_work_that_says_so_is_called_again_after_the_others(turns: Turns) -> None:
    done: list[str] = []

    def twice() -> bool:
        done.append("twice")
        return done.count("twice") < 2

    turns.soon("a", twice)
    turns.soon("b", lambda: done.append("once"))
    turns.finish()
    assert done == ["twice", "once", "twice"]
    assert turns.is_idle


def test_newer_work_replaces_what_waits_under_its_key(turns: Turns) -> None:
    done: list[str] = []
    turns.soon("a", lambda: done.append("old"))
    turns.soon("a", lambda: done.append("new"))
    turns.soon("b", lambda: done.append("dropped"))
    turns.drop("b")
    turns.finish()
    assert done == ["new"]


def test_work_asked_for_while_it_is_done_is_not_lost(turns: Turns) -> None:
    done: list[str] = []

    def old() -> bool:
        done.append("old")
        turns.soon("a", lambda: done.append("new"))
        return True

    turns.soon("a", old)
    turns.finish()
    assert done == ["old", "new"]


def test_modules_are_imported_beside_the_event_loop_in_order(qtbot: QtBot) -> None:
    names = ("no_such_module_anywhere", "colorsys")
    preload = Preload(names)
    told: list[str] = []
    preload.imported.connect(told.append)
    preload.start()
    qtbot.waitUntil(lambda: told == list(names))
    preload.wait()


def test_a_preload_that_never_started_is_not_waited_for() -> None:
    Preload(("colorsys",)).wait()
