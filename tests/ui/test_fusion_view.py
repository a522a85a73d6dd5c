"""The tab "Fusion" and the line below the scene: rows, colours, picking, copying, empty states."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QTreeWidgetItem
from pytestqt.qtbot import QtBot

from explorer.model.fusion import plan_of
from explorer.model.messages import GraphCaptured
from explorer.model.run import (
    Bytes,
    CompileCost,
    FusionGroup,
    FusionRefusal,
    RefusalReason,
    Run,
    StrategyInfo,
)
from explorer.recording import load_recording
from explorer.ui.details_panel import FUSION_TAB, DetailsPanel
from explorer.ui.finding_line import FindingLine
from explorer.ui.fusion_rows import Row, plan_rows, run_hint, run_rows
from explorer.ui.fusion_tree import LEAST_GROUP_PX, FusionTree
from explorer.ui.fusion_view import NOTHING, FusionView
from explorer.ui.main_window import MainWindow
from explorer.ui.store import Store
from explorer.ui.theme import DARK, LIGHT
from explorer.ui.turns import Turns
from tests.conftest import CHECKOUT
from tests.fixtures_runs import GPU_GRAPH, compiled_attention, eager_attention, failed_run
from tests.ui.drive import click, press

FUSED = "scale + mask + softmax + dropout"
FIRST_CALL_S = 1.25


@pytest.fixture(scope="module")
def recorded() -> Run:
    runs = load_recording(CHECKOUT / "assets" / "recordings" / "attention-h200.kx")
    return next(run for run in runs if run.strategy.spec == "compile")


@pytest.fixture(scope="module")
def plan_run(recorded: Run) -> Run:
    """The recorded run as a plan's: groups with compile times, and a refusal."""
    ops = ("scale", "mask", "softmax", "dropout")
    groups = (
        FusionGroup(
            ops=("qk",), bytes_read=33_554_432, bytes_written=1_073_741_824, launches=(1, 2),
            from_cache=True,
        ),
        FusionGroup(
            ops=ops, bytes_read=1_107_296_256, bytes_written=1_073_741_824, launches=(0, 3),
            compile_s=1.5,
        ),
        FusionGroup(
            ops=("pv",), bytes_read=1_090_519_040, bytes_written=16_777_216, launches=(4,),
            compile_s=0.25,
        ),
    )  # fmt: skip
    refusal = FusionRefusal(
        first="dropout", second="pv", sentence="pv is a matmul and a kernel of its own.",
        raw="cannot fuse op3 with op4: extern", reason=RefusalReason.MATMUL,
    )  # fmt: skip
    return replace(
        recorded,
        id="plan",
        strategy=StrategyInfo(name="plan", option="each", plan="qk|scale+mask+softmax+dropout|pv"),
        groups=groups,
        compile=CompileCost(first_call_s=FIRST_CALL_S, refusals=(refusal,)),
    )


def texts(row: Row) -> list[str]:
    return [cell.text for cell in row.cells]


def item_of(tree: FusionTree, *path: int) -> QTreeWidgetItem:
    found = tree.topLevelItem(path[0])
    for place in path[1:]:
        assert found is not None
        found = found.child(place)
    assert found is not None
    return found


class TestRows:
    def test_a_run_s_groups_with_planned_modelled_and_counted_bytes(self, recorded: Run) -> None:
        rows = run_rows(recorded)
        assert [row.cells[0].text for row in rows] == ["qk", FUSED, "pv", "2 other launches"]
        assert texts(rows[1])[1:8] == [
            "1", "2.18 GB", "4.33 GB", "+98 %", "5.36 GB", "+24 %", "3.16 ms",
        ]  # fmt: skip
        assert "read 2.15 GB, written 3.22 GB" in rows[1].cells[5].tip
        assert run_hint(recorded) == "planned 4.40 GB  →  counted 7.59 GB"

    def test_differences_are_coloured_by_whether_they_are_explained(self, recorded: Run) -> None:
        qk, fused, *_ = run_rows(recorded)
        assert (qk.cells[6].color, fused.cells[6].color) == ("muted", "write")
        assert "reads the tensor mask once for each of 32 heads" in fused.cells[6].tip
        launch = recorded.launches[2]
        odd = replace(launch, bytes_read=Bytes(modelled=33_554_432, counted=900_000_000))
        launches = (*recorded.launches[:2], odd, *recorded.launches[3:])
        unknown = run_rows(replace(recorded, launches=launches))[0]
        assert unknown.cells[6].color == "warning"
        assert "cause not known" in unknown.cells[6].tip

    def test_findings_unfold_into_sentences_and_code(self, recorded: Run) -> None:
        extra, again, refused = run_rows(recorded)[1].children
        assert texts(extra) == [
            "extra buffer  ·  writes 2.15 GB of random numbers that the chain does not ask for"
        ]
        assert texts(again)[0].startswith("read again  ·  ")
        assert texts(refused) == ["not fused  ·  dropout with pv: matmul alone"]
        code = [texts(row)[0] for row in extra.children if row.is_code]
        assert code[0] == (
            "generated code, line 65:  tmp11 = tl.rand(tmp9, (tmp10).to(tl.uint32))"
        )  # fmt: skip
        assert not extra.is_open

    def test_compiling_is_told_by_group(self, recorded: Run, plan_run: Run) -> None:
        assert [row.cells[8].text for row in run_rows(plan_run)] == ["cached", "1.50 s", "0.250 s"]
        assert run_rows(recorded)[0].cells[8].text == "–"

    def test_a_refusal_stands_below_the_earlier_group_with_the_raw_text(
        self, plan_run: Run
    ) -> None:
        refusal = run_rows(plan_run)[1].children[-1]
        assert texts(refusal) == ["not fused  ·  dropout with pv: matmul alone"]
        assert "pv is a matmul and a kernel of its own." in [texts(r)[0] for r in refusal.children]
        raw = refusal.children[-1]
        assert raw.is_code
        assert "cannot fuse op3 with op4: extern" in texts(raw)[0]

    def test_a_group_of_several_kernels_is_marked(self, plan_run: Run) -> None:
        groups = (replace(plan_run.groups[1], launches=(3, 4)), *plan_run.groups[2:])
        row = run_rows(replace(plan_run, groups=groups))[0]
        assert (row.cells[1].text, row.cells[1].color) == ("2", "warning")
        assert "nvjet_sm90" in row.cells[1].tip

    def test_a_plan_that_has_not_run_promises_bytes_and_no_more(self) -> None:
        ops = [op.name for op in GPU_GRAPH.ops]
        rows = plan_rows(GPU_GRAPH, plan_of(ops, [("scale", "mask")]))
        assert [row.cells[0].text for row in rows][1] == "scale + mask"
        # Scores and mask in, masked out.
        assert rows[1].cells[2].text == "2.18 GB"
        assert {cell.text for cell in rows[1].cells[3:]} == {""}


class TestTree:
    @pytest.fixture
    def view(self, qtbot: QtBot, recorded: Run) -> FusionView:
        store, made = Store(), FusionView()
        qtbot.addWidget(made)
        store.add_runs([recorded])
        made.resize(720, 200)
        made.show()
        made.show_state(store.state)
        return made

    def test_groups_are_open_and_findings_are_not(self, view: FusionView) -> None:
        assert view.sentence == ""
        assert item_of(view.tree, 1).isExpanded()
        assert not item_of(view.tree, 1, 0).isExpanded()
        assert item_of(view.tree, 1, 0).isFirstColumnSpanned()

    def test_a_column_of_dashes_is_hidden(self, view: FusionView, plan_run: Run) -> None:
        assert view.tree.isColumnHidden(8)
        assert not view.tree.isColumnHidden(5)
        view.tree.set_rows(run_rows(plan_run))
        assert not view.tree.isColumnHidden(8)

    def test_where_it_is_narrow_the_groups_names_stay(
        self, view: FusionView, plan_run: Run, qtbot: QtBot
    ) -> None:
        view.tree.set_rows(run_rows(plan_run))
        view.resize(1000, 200)
        view.show()
        assert not view.tree.isColumnHidden(8)
        view.resize(460, 200)
        assert view.tree.columnWidth(0) >= LEAST_GROUP_PX
        assert not view.tree.isColumnHidden(3)
        assert view.tree.isColumnHidden(8)
        view.resize(1000, 200)
        assert not view.tree.isColumnHidden(8)

    def test_picking_a_row_picks_its_launch(self, view: FusionView, qtbot: QtBot) -> None:
        tree = view.tree
        with qtbot.waitSignal(view.launch_selected) as picked:
            click(tree.viewport(), tree.visualItemRect(item_of(tree, 2)).center().toPointF())
        assert picked.args == [4]
        with qtbot.waitSignal(view.launch_selected) as picked:
            press(tree, Qt.Key.Key_Up)
        assert picked.args == [3]

    def test_following_the_store_tells_nobody_and_keeps_a_finding_picked(
        self, view: FusionView, qtbot: QtBot
    ) -> None:
        with qtbot.assertNotEmitted(view.launch_selected):
            view.set_selected(3)
        assert view.tree.currentItem() is item_of(view.tree, 1)
        view.tree.setCurrentItem(item_of(view.tree, 1, 1))
        view.set_selected(3)
        assert view.tree.currentItem() is item_of(view.tree, 1, 1)
        view.set_selected(None)
        assert view.tree.selectedItems() == []

    def test_return_unfolds_and_folds(self, view: FusionView) -> None:
        finding = item_of(view.tree, 1, 0)
        view.tree.setCurrentItem(finding)
        press(view.tree, Qt.Key.Key_Return)
        assert finding.isExpanded()
        press(view.tree, Qt.Key.Key_Return)
        assert not finding.isExpanded()

    def test_a_long_sentence_is_as_high_as_its_lines(self, view: FusionView) -> None:
        tree = view.tree
        item_of(tree, 1, 0).setExpanded(True)
        sentence = item_of(tree, 1, 0, 1)
        wide = tree.visualItemRect(sentence).height()
        view.resize(420, 200)
        tree.doItemsLayout()
        assert tree.visualItemRect(sentence).height() > wide

    def test_copying_takes_the_picked_row_with_all_below_it(self, view: FusionView) -> None:
        view.tree.setCurrentItem(item_of(view.tree, 1))
        press(view.tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        copied = QGuiApplication.clipboard().text()
        assert copied.startswith(f"{FUSED}\t1\t2.18 GB\t4.33 GB\t+98 %")
        assert "    generated code, line 66:  tl.store(out_ptr2" in copied
        view.set_selected(None)
        assert view.tree.copied_text().startswith("Group\tKernels\tPlanned")

    def test_colours_follow_the_theme(self, view: FusionView) -> None:
        item = item_of(view.tree, 1)
        assert item.foreground(0).color() == DARK.color("fused")
        view.set_theme(LIGHT)
        assert item.foreground(0).color() == LIGHT.color("fused")


class TestStates:
    def test_without_run_and_graph_a_sentence_says_what_to_do(self, qtbot: QtBot) -> None:
        view = FusionView()
        qtbot.addWidget(view)
        view.show_state(Store().state)
        assert view.sentence == NOTHING

    def test_a_run_that_failed_says_why(self, qtbot: QtBot) -> None:
        view, store = FusionView(), Store()
        qtbot.addWidget(view)
        store.add_runs([replace(failed_run(), graph=replace(GPU_GRAPH, ops=()))])
        store.show_run(store.state.runs[0].key)
        view.show_state(store.state)
        assert view.sentence.startswith("CUDA ran out of memory")

    def test_before_a_run_the_plan_s_promise_is_shown(self, qtbot: QtBot) -> None:
        store, turns = Store(), Turns()
        panel = DetailsPanel(store, turns)
        qtbot.addWidget(panel)
        panel.tabs.setCurrentIndex(FUSION_TAB)
        assert panel.fusion.sentence == NOTHING
        store.set_captured(
            GraphCaptured(
                graph=GPU_GRAPH, parameters=dict(store.state.parameters.values), device="cpu",
                estimate_bytes=0,
            )
        )  # fmt: skip
        # Not in the turn in which a click is painted.
        assert not panel.fusion.tree.rows
        turns.finish()
        assert len(panel.fusion.tree.rows) == len(GPU_GRAPH.ops)
        assert "6 kernels" in panel.words
        assert "planned" in panel.words


class TestLine:
    def test_it_says_the_most_telling_difference_and_asks_for_more(
        self, qtbot: QtBot, recorded: Run
    ) -> None:
        store = Store()
        line = FindingLine(store)
        qtbot.addWidget(line)
        assert line.isHidden()
        store.add_runs([recorded])
        assert not line.isHidden()
        assert line.text == (
            f"{FUSED} writes 2.15 GB of random numbers that the chain does not ask for"
        )
        with qtbot.waitSignal(line.why_requested):
            click(line.why)

    def test_it_is_hidden_where_bytes_agree(self, qtbot: QtBot) -> None:
        store = Store()
        run = eager_attention()
        launches = tuple(
            replace(each, bytes_read=replace(each.bytes_read, counted=each.bytes_read.modelled),
                    bytes_written=replace(
                        each.bytes_written, counted=each.bytes_written.modelled), accesses=())
            for each in run.launches
        )  # fmt: skip
        store.add_runs([replace(run, launches=launches)])
        line = FindingLine(store)
        qtbot.addWidget(line)
        assert (line.isHidden(), line.text) == (True, "")

    def test_why_opens_the_tab_at_the_finding(self, qtbot: QtBot, recorded: Run) -> None:
        store = Store()
        store.add_runs([compiled_attention(), recorded])
        store.show_run(store.state.runs[1].key)
        window = MainWindow(store)
        qtbot.addWidget(window)
        window.show()
        click(window.scene.finding.why)
        assert window.details.tabs.currentIndex() == FUSION_TAB
        line = window.scene.finding
        assert line.rect().contains(line.why.geometry())
        item = item_of(window.details.fusion.tree, 1, 0)
        assert window.details.fusion.tree.currentItem() is item
        assert item.isExpanded()
        assert store.state.launch == 3
        assert window.focusWidget() is window.details.fusion.tree
