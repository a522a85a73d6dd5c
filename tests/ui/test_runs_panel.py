"""The session's runs: every action of the list, by mouse and by keys."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from explorer.ui.runs_model import COLUMNS, MARKS, NAME, SETTING, TIME, TRAFFIC, RunsModel
from explorer.ui.runs_panel import RunsPanel
from explorer.ui.store import Store
from tests.fixtures_param_sweep import k_sweep
from tests.fixtures_runs import (
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    sdpa_attention,
)
from tests.ui.drive import click, double_click, press


@pytest.fixture
def store() -> Store:
    store = Store()
    store.add_runs([eager_attention(), compiled_attention(), sdpa_attention()])
    return store


@pytest.fixture
def panel(qtbot: QtBot, store: Store) -> RunsPanel:
    panel = RunsPanel(store)
    qtbot.addWidget(panel)
    panel.resize(900, 300)
    panel.show()
    return panel


def text(model: RunsModel, row: int, column: int) -> str:
    return str(model.index(row, column).data())


def test_the_model_is_sound_whatever_happens_to_the_list(qapp: QApplication, store: Store) -> None:
    del qapp
    model = RunsModel(store)
    # Its complaints are Qt warnings, and those fail a test.
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Warning)
    store.add_runs([cpu_attention(), failed_run()], show=False)
    store.remove_run("compile")
    store.undo_remove()
    store.compare_run("sdpa")
    assert model.rowCount() == 5
    assert model.columnCount() == len(COLUMNS)
    assert tester.model() is model


def test_a_point_of_a_sweep_begins_with_its_value() -> None:
    store = Store()
    store.add_runs(k_sweep()[:2])
    model = RunsModel(store)
    said = text(model, 0, SETTING)
    assert said.startswith("k 1 · elementwise ")
    assert said.count("k 1") == 1


def test_own_code_is_named_without_its_path() -> None:
    store = Store()
    run = eager_attention()
    name = "/srv/somebody/with/a/long/path/net.py:gelu_mlp"
    chain = replace(run.chain, name=name, title="gelu_mlp", parameters={"rows": 64})
    store.add_runs([replace(run, chain=chain)])
    assert text(RunsModel(store), 0, SETTING) == "gelu_mlp rows 64"


def test_rows_say_time_and_traffic_with_pedigree(store: Store) -> None:
    store.add_runs([failed_run()], show=False)
    model = RunsModel(store)
    assert text(model, 0, TIME) == "5.35 ms"
    assert text(model, 0, TRAFFIC).endswith("counted")
    assert text(model, 3, TIME) == "failed"
    assert "out of memory" in model.index(3, NAME).data(Qt.ItemDataRole.ToolTipRole)


def test_a_double_click_shows_the_run(store: Store, panel: RunsPanel) -> None:
    where = panel.table.visualRect(panel.model.index(2, MARKS)).center()
    double_click(panel.table.viewport(), where)
    assert store.state.shown == "sdpa"
    assert text(panel.model, 2, MARKS) == "shown"


def test_show_compare_and_pin_act_on_the_selection(store: Store, panel: RunsPanel) -> None:
    panel.select("compile")
    click(panel.compare_button)
    assert store.state.compared == "compile"
    assert panel.compare_button.isChecked()
    assert text(panel.model, 1, MARKS) == "beside"
    click(panel.pin_button)
    assert store.state.runs[1].pinned
    click(panel.compare_button)
    assert store.state.compared is None
    click(panel.show_button)
    assert store.state.shown == "compile"
    assert text(panel.model, 1, MARKS) == "shown, pinned"
    assert not panel.show_button.isEnabled()
    assert not panel.compare_button.isEnabled()


def test_renaming_edits_in_place(qtbot: QtBot, store: Store, panel: RunsPanel) -> None:
    panel.select("sdpa")
    click(panel.rename_button)
    editor = panel.table.viewport().findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    editor.setText("Best")
    press(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: store.state.runs[2].name == "Best")
    assert store.state.runs[2].run.label == "Best"
    assert store.state.shown == "eager"


def test_delete_takes_the_selected_off_and_undo_brings_them_back(
    store: Store, panel: RunsPanel
) -> None:
    panel.select("compile")
    # Wherever in the panel the keyboard is.
    panel.pin_button.setFocus()
    press(panel.pin_button, Qt.Key.Key_Delete)
    assert [item.key for item in store.state.runs] == ["eager", "sdpa"]
    assert panel.undo_button.isEnabled()
    click(panel.undo_button)
    assert [item.key for item in store.state.runs] == ["eager", "compile", "sdpa"]
    assert not panel.undo_button.isEnabled()


def test_a_selection_survives_another_run(store: Store, panel: RunsPanel) -> None:
    panel.select("compile")
    store.add_runs([cpu_attention()], show=False)
    assert panel.selected_keys() == ["compile"]


def test_return_shows_the_selected_run(store: Store, panel: RunsPanel) -> None:
    panel.select("sdpa")
    press(panel.table, Qt.Key.Key_Return)
    assert store.state.shown == "sdpa"


def test_a_failed_run_is_told_not_shown(store: Store, panel: RunsPanel) -> None:
    store.add_runs([failed_run()], show=False)
    panel.select("failed")
    assert not panel.show_button.isEnabled()
    press(panel.table, Qt.Key.Key_Return)
    assert store.state.shown == "eager"
    assert store.state.notice is not None
    assert "out of memory" in store.state.notice.sentence


def test_save_asks_for_the_selected_or_for_all(qtbot: QtBot, panel: RunsPanel) -> None:
    with qtbot.waitSignal(panel.save_requested) as everything:
        click(panel.save_button)
    assert everything.args == [["eager", "compile", "sdpa"]]
    panel.select("sdpa")
    with qtbot.waitSignal(panel.save_requested) as one:
        click(panel.save_button)
    assert one.args == [["sdpa"]]


def test_nothing_to_save_is_said(qtbot: QtBot) -> None:
    store = Store()
    panel = RunsPanel(store)
    qtbot.addWidget(panel)
    with qtbot.assertNotEmitted(panel.save_requested):
        panel.save()
    assert store.state.notice is not None
    assert "no run to save" in store.state.notice.sentence


def test_an_empty_list_says_what_will_be_in_it(qtbot: QtBot) -> None:
    store = Store()
    panel = RunsPanel(store)
    qtbot.addWidget(panel)
    panel.resize(900, 300)
    panel.show()
    assert panel.table.sentence.startswith("No run yet")
    assert panel.table.accessibleDescription() == panel.table.sentence
    assert panel.table.horizontalHeader().isHidden()
    empty = panel.table.viewport().grab().toImage()
    store.add_runs([eager_attention()])
    assert panel.table.sentence == ""
    assert not panel.table.horizontalHeader().isHidden()
    store.remove_run(store.state.runs[0].key)
    assert panel.table.viewport().grab().toImage() == empty
    colors = {empty.pixel(x, empty.height() // 2) for x in range(empty.width())}
    assert len(colors) > 5, "words are drawn"
