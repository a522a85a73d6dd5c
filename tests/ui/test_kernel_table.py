"""The kernel table: Qt's own model test, values by hand, sorting, copying, selection."""

import csv
import io
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer.model.run import Bytes, Run
from explorer.ui.kernel_columns import COLUMNS, as_tsv, cell_text, entries_of
from explorer.ui.kernel_table import KernelTable, KernelTableModel
from explorer.ui.words import DASH
from tests.fixtures_runs import compiled_attention, cpu_attention, eager_attention, failed_run

PLACE = {column.key: place for place, column in enumerate(COLUMNS)}


@pytest.fixture
def table(qtbot: QtBot) -> KernelTable:
    made = KernelTable()
    qtbot.addWidget(made)
    made.resize(1200, 300)
    made.set_run(eager_attention())
    return made


def shown(table: KernelTable, key: str) -> list[str]:
    model = table.model()
    return [str(model.index(row, PLACE[key]).data()) for row in range(model.rowCount())]


def text(run: Run, row: int, key: str) -> str:
    return cell_text(COLUMNS[PLACE[key]], entries_of(run)[row])


def reason(run: Run, row: int, key: str) -> str:
    model = KernelTableModel()
    model.set_run(run)
    return str(model.index(row, PLACE[key]).data(Qt.ItemDataRole.ToolTipRole))


def test_the_model_keeps_qts_rules(qapp: QApplication) -> None:
    model = KernelTableModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_run(eager_attention())
    model.set_run(cpu_attention())
    model.set_run(None)
    assert tester.model() is model
    assert model.rowCount() == 0


def test_a_row_by_hand() -> None:
    run = eager_attention()
    # The mask kernel: 1.41 ms, 2147.4 MB read where the model says 1,107.3, 1,086 written.
    assert text(run, 2, "number") == "3"
    assert text(run, 2, "ops") == "mask"
    assert text(run, 2, "duration_us") == "1,410.0"
    assert text(run, 2, "read_modelled_mb") == "1,107.3"
    assert text(run, 2, "read_counted_mb") == "2,147.4"
    assert text(run, 2, "read_difference") == "+94 %"
    assert text(run, 2, "written_difference") == "+1.1 %"
    assert text(run, 2, "gigabytes_per_s") == "2,293.2"
    assert text(run, 2, "share") == "54 %"
    assert text(run, 2, "block") == "256 × 1 × 1"
    assert text(run, 2, "registers") == "32"


def test_few_bytes_are_not_rounded_to_none() -> None:
    run = cpu_attention()

    def megabytes(n_bytes: int) -> str:
        launch = replace(run.launches[0], bytes_read=Bytes(modelled=n_bytes))
        return text(replace(run, launches=(launch,)), 0, "read_modelled_mb")

    assert megabytes(8192) == "0.00819"
    assert megabytes(4) == "0.000004"
    assert megabytes(0) == "0.0"
    assert megabytes(50_000) == "0.1"


def test_a_column_without_any_value_is_not_there(table: KernelTable) -> None:
    assert not table.isColumnHidden(PLACE["read_counted_mb"])
    table.set_run(cpu_attention())
    hidden = {key for key, place in PLACE.items() if table.isColumnHidden(place)}
    assert {"read_counted_mb", "written_counted_mb", "grid", "registers"} <= hidden
    assert not {"number", "title", "duration_us", "read_modelled_mb", "ops"} & hidden
    table.set_run(eager_attention())
    assert not table.isColumnHidden(PLACE["read_counted_mb"])


def test_missing_values_are_dashes_with_a_reason() -> None:
    run = cpu_attention()
    assert text(run, 0, "read_counted_mb") == DASH
    assert "CPU" in reason(run, 0, "read_counted_mb")
    assert text(run, 0, "grid") == DASH
    assert reason(run, 0, "grid") == "A CPU's launches have none."
    assert "Triton" in reason(eager_attention(), 0, "spills")
    assert "ceilings were not measured" in reason(run, 0, "share")


def test_a_share_over_one_is_a_dash_that_says_why() -> None:
    run = eager_attention()
    fast = replace(run, launches=(replace(run.launches[1], duration_us=1.0),))
    assert text(fast, 0, "share") == DASH
    assert "measure the ceilings again" in reason(fast, 0, "share")


def test_an_uncounted_helper_says_what_counters_see() -> None:
    run = compiled_attention()
    helper = replace(run.launches[0], bytes_read=Bytes(modelled=0))
    run = replace(run, launches=(helper, *run.launches[1:]))
    assert "Counters see kernels only" in reason(run, 0, "read_counted_mb")


def test_loop_nests_follow_their_launch_without_a_time() -> None:
    run = cpu_attention()
    entries = entries_of(run)
    assert [text(run, row, "number") for row in range(len(entries))] == [
        "1", "2", "2.1", "2.2", "2.3", "3",
    ]  # fmt: skip
    assert text(run, 2, "ops") == "scale + mask + softmax"
    assert text(run, 2, "duration_us") == DASH
    assert "no time of its own" in reason(run, 2, "duration_us")
    assert text(run, 2, "read_modelled_mb") == "33.6"


def test_sorting_puts_missing_values_last_both_ways(table: KernelTable) -> None:
    run = eager_attention()
    launches = list(run.launches)
    launches[1] = replace(launches[1], duration_us=None)
    table.set_run(replace(run, launches=tuple(launches)))
    column = PLACE["duration_us"]
    table.sortByColumn(column, Qt.SortOrder.AscendingOrder)
    rising = shown(table, "duration_us")
    table.sortByColumn(column, Qt.SortOrder.DescendingOrder)
    falling = shown(table, "duration_us")
    assert rising[-1] == falling[-1] == DASH
    assert rising[:-1] == falling[:-1][::-1]
    assert rising[0] == "290.0"


def test_numbers_sort_as_numbers(table: KernelTable) -> None:
    table.sortByColumn(PLACE["written_counted_mb"], Qt.SortOrder.AscendingOrder)
    values = [float(value.replace(",", "")) for value in shown(table, "written_counted_mb")]
    assert values == sorted(values)


def test_control_c_copies_the_selection_as_tsv(table: KernelTable) -> None:
    table.selectRow(2)
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    rows = list(csv.DictReader(io.StringIO(QGuiApplication.clipboard().text()), delimiter="\t"))
    assert [row["ops"] for row in rows] == ["mask"]
    assert float(rows[0]["read_counted_mb"]) == pytest.approx(2147.4)
    table.clearSelection()
    copied = list(csv.DictReader(io.StringIO(table.copied_text()), delimiter="\t"))
    assert [row["ops"] for row in copied] == ["qk", "scale", "mask", "softmax", "dropout", "pv"]


def test_tsv_leaves_missing_values_empty() -> None:
    rows = list(csv.DictReader(io.StringIO(as_tsv(entries_of(cpu_attention()))), delimiter="\t"))
    assert rows[0]["read_counted_mb"] == ""
    assert len(rows) == 6


def test_picking_a_row_tells_the_launch(table: KernelTable, qtbot: QtBot) -> None:
    table.sortByColumn(PLACE["duration_us"], Qt.SortOrder.DescendingOrder)
    with qtbot.waitSignal(table.launch_selected) as caught:
        table.selectRow(0)
    assert caught.args == [3]  # Softmax takes longest.


def test_following_a_selection_tells_nothing(table: KernelTable, qtbot: QtBot) -> None:
    table.sortByColumn(PLACE["duration_us"], Qt.SortOrder.AscendingOrder)
    with qtbot.assertNotEmitted(table.launch_selected):
        table.set_selected(4)
        picked = table.selectionModel().selectedRows()[0]
        assert picked.siblingAtColumn(PLACE["ops"]).data() == "dropout"
        table.set_selected(None)
        assert not table.selectionModel().hasSelection()
        table.set_run(compiled_attention())


def test_the_hint_has_totals_and_pedigree(table: KernelTable) -> None:
    assert table.hint.startswith("counted: read 6.49 GB, written ") or table.hint.startswith(
        "counted: read 6.50 GB, written "
    )
    assert table.hint.endswith("  ·  6 launches")
    table.set_run(failed_run())
    assert table.hint == ""
    assert table.model().rowCount() == 0


def test_without_a_row_it_says_why(table: KernelTable) -> None:
    assert table.sentence == ""
    table.set_run(None)
    assert table.sentence.startswith("No run is shown yet")
    assert table.horizontalHeader().isHidden()
    run = failed_run()
    table.set_run(run)
    assert table.sentence == run.error
    table.set_run(eager_attention())
    assert not table.horizontalHeader().isHidden()
