"""Plans as strips: where cells, pills and ties lie, and where strips stand in a text's place."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer.model.fusion import FusionPlan, parse_plan
from explorer.model.sweep import sweep_of
from explorer.ui.plan_strip import (
    PlanOps,
    StripLayout,
    draw_strip,
    letters,
    plan_ops,
    strip_layout,
)
from explorer.ui.strategy_row import RowText, StrategyRow
from explorer.ui.sweep_list import PLAN, SweepList
from explorer.ui.theme import DARK, LIGHT, Theme
from explorer.ui.timeline_view import TimelineView
from tests.fixtures_runs import compiled_attention
from tests.fixtures_sweep import many_plans, plan_run, scores_sweep

OPS = ("residual", "square", "mean", "eps", "rsqrt", "normalize", "weight")
PARTED = "residual+normalize|square+mean|eps+weight|rsqrt"


def plan(text: str, ops: Sequence[str] = OPS) -> FusionPlan:
    return parse_plan(text, ops, "chain")


def laid(text: str, width: float = 210) -> StripLayout:
    return strip_layout(QRectF(4, 2, width, 20), plan(text), OPS)


def painted(text: str, theme: Theme, width: int = 210, ring: QColor | None = None) -> QImage:
    image = QImage(width + 8, 24, QImage.Format.Format_RGB32)
    image.fill(theme.color("panel"))
    painter = QPainter(image)
    room = QRectF(4, 2, width, 20)
    draw_strip(painter, room, PlanOps(plan(text), OPS), theme, ring=ring)
    painter.end()
    return image


def pinkness(image: QImage, x: float, y: float, theme: Theme) -> float:
    """How far a pixel is from the panel's face towards the colour of fusion, 0 to 1."""
    pixel, face, fused = image.pixelColor(round(x), round(y)), theme.panel, theme.fused
    far = QColor(fused).green() - QColor(face).green()
    return (pixel.green() - QColor(face).green()) / far


class TestWhereThingsLie:
    def test_neighbours_of_a_group_share_a_pill(self) -> None:
        found = laid("residual+square+mean|eps|rsqrt+normalize|weight")
        spans = [(pill.places.start, pill.places.stop, pill.is_fused) for pill in found.pills]
        assert spans == [(0, 3, True), (3, 4, False), (4, 6, True), (6, 7, False)]
        assert found.ties == ()

    def test_an_op_lies_in_the_same_place_in_every_plan(self) -> None:
        one, other = laid("each"), laid("square+mean")
        assert one.cell == other.cell
        assert other.pills[1].rect.left() == one.pills[1].rect.left()
        assert other.pills[1].rect.right() == one.pills[2].rect.right()

    def test_parts_of_a_group_are_tied_below_and_no_tie_lies_on_another(self) -> None:
        found = laid(PARTED)
        assert [pill.places.start for pill in found.pills] == [0, 1, 3, 4, 5, 6]
        assert [pill.is_fused for pill in found.pills] == [True, True, True, False, True, True]
        first, second = found.ties
        assert first.ends == (found.pills[0].rect.center().x(), found.pills[4].rect.center().x())
        assert second.ends == (found.pills[2].rect.center().x(), found.pills[5].rect.center().x())
        assert first.y != second.y
        assert all(tie.y > found.pills[0].rect.bottom() for tie in found.ties)

    def test_ties_beside_each_other_share_a_line(self) -> None:
        found = laid("residual+mean|square|eps+normalize|rsqrt|weight")
        assert len({tie.y for tie in found.ties}) == 1

    @pytest.mark.parametrize("width", [60, 75, 110, 210, 900])
    @pytest.mark.parametrize("text", ["each", "all", PARTED])
    def test_it_fits_any_width(self, text: str, width: float) -> None:
        room = QRectF(4, 2, width, 20)
        found = laid(text, width)
        assert all(room.contains(pill.rect) and pill.rect.width() > 2 for pill in found.pills)
        assert all(tie.y <= room.bottom() for tie in found.ties)
        edges = [pill.rect for pill in found.pills]
        assert all(a.right() < b.left() for a, b in pairwise(edges))

    def test_names_are_as_long_as_every_cell_has_room_for(self, qapp: QApplication) -> None:
        assert letters(OPS, 9) == 0
        assert letters(OPS, 16) == 1
        assert letters(OPS, 30) >= 2
        assert letters(OPS, 90) == len("normalize")

    def test_a_run_of_no_plan_has_none(self) -> None:
        assert plan_ops(compiled_attention()) is None
        found = plan_ops(plan_run("scale+mask|softmax|dropout"))
        assert found is not None
        assert found.plan.text == "scale+mask|softmax|dropout"
        assert found.ops == ("scale", "mask", "softmax", "dropout")


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
class TestWhatIsPainted:
    def test_pills_have_the_colour_of_fusion_and_single_ops_do_not(
        self, qapp: QApplication, theme: Theme
    ) -> None:
        image, found = painted("residual|square+mean|eps", theme, 60), laid("square+mean", 60)
        alone, fused = found.pills[0].rect, found.pills[1].rect
        assert pinkness(image, fused.center().x() + 3, fused.top() + 4, theme) > 0.15
        assert abs(pinkness(image, alone.center().x(), alone.top() + 4, theme)) < 0.1

    def test_a_tie_is_a_line_below(self, qapp: QApplication, theme: Theme) -> None:
        image, tie = painted(PARTED, theme), laid(PARTED).ties[0]
        middle = (tie.ends[0] + tie.ends[1]) / 2
        reach = [pinkness(image, middle, tie.y + dy, theme) for dy in (-1, 0)]
        assert max(reach) > 0.5
        bare = painted("each", theme)
        assert all(abs(pinkness(bare, middle, tie.y + dy, theme)) < 0.1 for dy in (-1, 0))

    def test_a_ring_stands_round_it(self, qapp: QApplication, theme: Theme) -> None:
        without, ringed = painted("all", theme), painted("all", theme, ring=theme.color("read"))
        assert without != ringed


class TestTheSweepsList:
    @pytest.fixture
    def plans(self, qtbot: QtBot) -> SweepList:
        shown = SweepList()
        qtbot.addWidget(shown)
        shown.resize(200, 220)
        shown.set_looks(DARK, 1)
        shown.set_sweep(sweep_of(many_plans(6)), None)
        shown.show()
        return shown

    def test_strips_stand_where_texts_do_not_fit(self, plans: SweepList) -> None:
        assert plans.as_strips
        plans.resize(900, 220)
        assert not plans.as_strips
        plans.set_sweep(sweep_of(scores_sweep()), None)
        assert not plans.as_strips
        plans.resize(260, 220)
        assert plans.as_strips

    def test_rows_differ_where_their_texts_look_alike(self, plans: SweepList) -> None:
        rows = [plans.visualRect(plans.model().index(row, PLAN)) for row in range(8)]
        images = [plans.viewport().grab(rect).toImage() for rect in rows]
        for i, image in enumerate(images):
            assert (
                image.size() == QSize(rows[0].width(), rows[0].height()) * image.devicePixelRatio()
            )
            assert all(image != other for other in images[i + 1 :])

    def test_the_texts_stay_for_screen_readers_tooltips_and_sorting(self, plans: SweepList) -> None:
        point = plans.points[3]
        index = plans.model().index(3, PLAN)
        assert index.data() == point.text
        assert point.text.split("+")[0] in index.data(Qt.ItemDataRole.ToolTipRole)
        table: QAccessibleInterface = QAccessible.queryAccessibleInterface(plans)
        cells = [table.child(i) for i in range(table.childCount())]
        assert point.text in [cell.text(QAccessible.Text.Name) for cell in cells if cell]
        plans.sortByColumn(PLAN, Qt.SortOrder.AscendingOrder)
        texts = [each.text for each in plans.points]
        assert texts == sorted(texts)

    def test_the_heading_tells_the_order_of_the_ops(self, plans: SweepList) -> None:
        words = plans.model().headerData(
            PLAN, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole
        )
        assert "op1, op2, op3" in words


class TestElsewhere:
    def test_a_strategys_row_draws_its_plan_where_the_text_does_not_fit(self, qtbot: QtBot) -> None:
        row = StrategyRow("plan")
        qtbot.addWidget(row)
        row.set_theme(DARK)
        row.resize(290, row.height())
        shown = PlanOps(plan("residual+square+mean"), OPS)
        told = f"5 launches planned · {shown.plan.text}"

        def look(width: int, with_plan: PlanOps | None) -> QImage:
            row.resize(width, row.height())
            text = RowText(title="Your fusion", below=told, plan=with_plan)
            row.show_text(text, "plain", has_result=False, is_shown=False)
            return row.grab().toImage()

        assert look(290, shown) != look(290, None)
        assert look(900, shown) == look(900, None), "the text fits"
        assert told in row.accessibleName()

    def test_a_lane_of_the_timeline_does_so_too(self, qtbot: QtBot) -> None:
        runs = [run for run in scores_sweep() if run.strategy.plan]
        view = TimelineView()
        qtbot.addWidget(view)
        view.set_theme(DARK)
        view.set_runs(runs)
        view.resize(560, 300)
        narrow = view.grab().toImage()
        fused = DARK.color("fused")
        strip_colors = {narrow.pixelColor(x, y).name() for x in range(2, 110) for y in range(300)}
        assert any(
            abs(QColor(name).red() - fused.red()) < 40 and QColor(name).green() < 170
            for name in strip_colors
        )
