"""How each view is painted into an exported picture: one entry each."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QApplication, QWidget

from explorer.chains import CHAINS
from explorer.chains.own import is_own
from explorer.model.errors import UsageError
from explorer.model.own_code import OwnCode
from explorer.model.param_sweep import ParameterSweep, sweeps_in
from explorer.model.param_sweep_words import values_text
from explorer.model.run import Run
from explorer.model.sweep import Sweep, sweep_of
from explorer.ui.line_widths import widened
from explorer.ui.painting import HEADING_HEIGHT, draw_panel, draw_sentence
from explorer.ui.theme import Theme, palette
from explorer.ui.timeline_layout import AXIS_HEIGHT, MAX_LANE, TOP, lane_of
from explorer.ui.words import parameters_text, run_title, setting_text, with_direction

GAP = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """What is to be drawn.

    Attributes:
        runs: All of them.
        shown: Place of the one that is shown at length, -1 if none has launches.
        t_us: The moment of it.
        theme: Colours.
        recorded: Whether the runs come from a file.
    """

    runs: tuple[Run, ...]
    shown: int
    t_us: float | None
    theme: Theme
    recorded: bool

    @property
    def shown_run(self) -> Run | None:
        """The run that is shown at length."""
        return self.runs[self.shown] if self.shown >= 0 else None


def choose_shown(runs: Sequence[Run]) -> int:
    """The run to show at length: the first with a fused launch, else the first with launches.

    Returns:
        Its place, or -1 if no run has launches.
    """
    drawable = [place for place, run in enumerate(runs) if run.launches]
    fused = [p for p in drawable if any(launch.is_fused for launch in runs[p].launches)]
    return next(iter(fused or drawable), -1)


def lane_total_us(run: Run) -> float:
    """How long a run lasts on the shared axis."""
    return lane_of(run).total_us


def telling_moment_us(run: Run) -> float | None:
    """A moment at which there is something to see: well into the longest fused launch.

    Returns:
        None if the run has no launch with a duration.
    """
    placed = lane_of(run).schedule
    if placed is None:
        return None
    fused = [span for span in placed.spans if run.launches[span.index].is_fused]
    span = max(fused or placed.spans, key=lambda span: span.duration_us)
    return span.start_us + 0.42 * span.duration_us


def paint_window(painter: QPainter, rect: QRectF, shot: Shot) -> None:
    """The whole window, with these runs and no worker."""
    from explorer.ui.main_window import LEAST_SIZE, MainWindow
    from explorer.ui.store import Store

    application = QApplication.instance()
    before = application.palette() if isinstance(application, QApplication) else None
    store = Store()
    store.set_theme(shot.theme.name)
    store.add_runs(shot.runs, recorded_in="a recording" if shot.recorded else None)
    if shot.shown >= 0:
        store.show_run(store.state.runs[shot.shown].key)
        chain = shot.runs[shot.shown].chain
        # What the next run would be is of the same chain in a picture, which runs nothing.
        if chain.name in CHAINS:
            store.choose_chain(chain.name)
            store.set_direction(chain.direction)
        elif is_own(chain.name):
            with suppress(UsageError):
                store.open_own(chain.name, chain.own or OwnCode())
        store.set_playhead(shot.t_us or 0.0)
    window = MainWindow(store)
    # The picture's own foot says it in full.
    window.status.hide()
    window.results.fill()
    try:
        render_widget(painter, rect, window, least=LEAST_SIZE)
    finally:
        # The window dresses the whole application in its theme; others may be on screen.
        if before is not None and isinstance(application, QApplication):
            application.setPalette(before)


def paint_scene(painter: QPainter, rect: QRectF, shot: Shot) -> None:
    """The traffic scene of the shown run."""
    from explorer.ui.scene.draw import SceneOptions, draw

    run = shot.shown_run
    draw(
        painter,
        rect.adjusted(GAP, GAP, -GAP, 0),
        () if run is None else (run,),
        shot.t_us or 0.0,
        shot.theme,
        SceneOptions(recorded=shot.recorded),
    )


def paint_timeline(painter: QPainter, rect: QRectF, shot: Shot) -> None:
    """The timelines of all runs."""
    from explorer.ui.timeline_draw import draw_timeline
    from explorer.ui.timeline_layout import Selected, heading_hint

    zoom = _zoom(rect, 860, 70 + 34 * len(shot.runs))
    title = f"Timelines  ·  {_chains(shot.runs)}"
    outer = rect.adjusted(GAP, GAP, -GAP, 0)
    needed = zoom * (HEADING_HEIGHT + 10 + TOP + AXIS_HEIGHT + MAX_LANE * len(shot.runs))
    spare = max(outer.height() - needed, 0.0)
    outer.adjust(0, spare / 2, 0, -spare / 2)
    inner = draw_panel(painter, outer, shot.theme, title, heading_hint(shot.runs), zoom)
    selected = Selected(shot.shown)
    draw_timeline(painter, inner, shot.runs, selected, shot.t_us, None, shot.theme, zoom)


def paint_roofline(painter: QPainter, rect: QRectF, shot: Shot) -> None:
    """The roofline of the shown run's device."""
    from explorer.ui.roofline_view import RooflineView

    view = RooflineView()
    zoom = min(_zoom(rect, 420, 360), 1.5)
    view.set_theme(shot.theme)
    view.set_zoom_factor(zoom)
    view.set_runs(shot.runs, max(shot.shown, 0))
    # A picture has no button to press.
    view.measure_button.setParent(None)
    view.fill_now()
    outer = rect.adjusted(GAP, GAP, -GAP, 0)
    title = f"Roofline  ·  {shot.runs[max(shot.shown, 0)].device.name}"
    inner = draw_panel(painter, outer, shot.theme, title, view.hint, zoom)
    render_widget(painter, inner, view, sheet=shot.theme)


def paint_table(painter: QPainter, rect: QRectF, shot: Shot) -> None:
    """The kernel table of every run that has launches, one below the other."""
    from explorer.ui.export_table import paint_tables

    paint_tables(painter, rect.adjusted(GAP, GAP, -GAP, 0), shot.runs, shot.theme)


def paint_graph(painter: QPainter, rect: QRectF, shot: Shot) -> None:
    """The op graph under each run, side by side: what fusing does to every link."""
    from explorer.ui.chain_picture import chain_picture
    from explorer.ui.graph_view import GraphView

    runs = [run for run in shot.runs if run.launches] or list(shot.runs[:1])
    columns = max(min(len(runs), int(rect.width() // 300)), 1)
    width = (rect.width() - GAP) / columns
    for place, run in enumerate(runs[:columns]):
        outer = QRectF(rect.x() + GAP + place * width, rect.y() + GAP, width - GAP, rect.height())
        outer.setBottom(rect.bottom())
        picture = chain_picture(run.graph, run if run.launches else None)
        hint = f"{picture.pedigree.value} bytes"
        inner = draw_panel(painter, outer, shot.theme, run_title(run), hint)
        view = GraphView()
        view.set_theme(shot.theme)
        view.set_picture(picture, run.device.memory_name)
        # Nobody can open a box of a picture.
        view.fold_all(False)
        view.resize(round(inner.width()), round(inner.height()))
        render_widget(painter, inner, view, sheet=shot.theme)
    if len(runs) > columns:
        words = f"{len(runs) - columns} more runs do not fit this width"
        draw_sentence(painter, rect.adjusted(0, rect.height() - 18, 0, 0), words, shot.theme)


def paint_sweep(painter: QPainter, rect: QRectF, shot: Shot) -> None:
    """The sweep of a parameter that the shown run is a point of, else of plans, else any."""
    of_parameter = param_sweep_in(shot.runs, shot.shown_run)
    sweep = sweep_in(shot.runs, shot.shown_run)
    is_point = shot.shown_run is not None and shot.shown_run.swept is not None
    if of_parameter is not None and (is_point or sweep is None):
        _paint_param_sweep(painter, rect, shot, of_parameter)
    elif sweep is not None:
        _paint_plan_sweep(painter, rect, shot, sweep)


def _paint_param_sweep(painter: QPainter, rect: QRectF, shot: Shot, sweep: ParameterSweep) -> None:
    """Time, speed-up, traffic and peak memory over the parameter, below what they say."""
    from explorer.ui.param_sweep_view import ParamSweepView

    view = ParamSweepView()
    zoom = min(_zoom(rect, 1050, 480), 1.5)
    view.set_theme(shot.theme)
    view.set_zoom_factor(zoom)
    view.without_pickers()
    view.set_sweep(sweep)
    view.fill_now()
    fixed = with_direction(parameters_text(sweep.fixed), sweep.first.chain.direction)
    outer = rect.adjusted(GAP, GAP, -GAP, 0)
    title = "  ·  ".join(filter(None, (sweep.first.chain.title, fixed)))
    hint = f"{sweep.name} {values_text(sweep)}"
    inner = draw_panel(painter, outer, shot.theme, title, hint, zoom)
    render_widget(painter, inner, view, sheet=shot.theme)


def _paint_plan_sweep(painter: QPainter, rect: QRectF, shot: Shot, sweep: Sweep) -> None:
    """Every plan's time over its traffic, with what they say together and the list of them."""
    from explorer.ui.sweep_view import SweepView

    view = SweepView()
    zoom = min(_zoom(rect, 1050, 480), 1.5)
    view.set_theme(shot.theme)
    view.set_zoom_factor(zoom)
    view.without_buttons()
    view.set_sweep(sweep)
    view.fill_now()
    run = sweep.points[0].run
    title = f"Sweep  ·  {sweep.chain}  ·  {setting_text(run)}"
    outer = rect.adjusted(GAP, GAP, -GAP, 0)
    inner = draw_panel(painter, outer, shot.theme, title, view.hint, zoom)
    render_widget(painter, inner, view, sheet=shot.theme)


def sweep_in(runs: Sequence[Run], shown: Run | None) -> Sweep | None:
    """The plans that did the shown run's work, else the newest plan's; None without any."""
    return (sweep_of(runs, shown) if shown else None) or sweep_of(runs)


def param_sweep_in(runs: Sequence[Run], shown: Run | None) -> ParameterSweep | None:
    """The parameter sweep that the shown run is a point of, else the newest; None without any."""
    found = sweeps_in(runs)
    mine = (sweep for sweep in found if any(run is shown for run in sweep.runs))
    return next(mine, found[-1] if found else None)


PAINTERS: dict[str, Callable[[QPainter, QRectF, Shot], None]] = {
    "window": paint_window,
    "scene": paint_scene,
    "timeline": paint_timeline,
    "roofline": paint_roofline,
    "table": paint_table,
    "graph": paint_graph,
    "sweep": paint_sweep,
}


def render_widget(
    painter: QPainter,
    rect: QRectF,
    widget: QWidget,
    *,
    least: tuple[int, int] = (1, 1),
    sheet: Theme | None = None,
) -> None:
    """Lay a widget out in ``rect`` and paint it, without showing it; it is gone afterwards.

    Args:
        painter: Where to.
        rect: In the painter's coordinates.
        widget: A top-level widget.
        least: It is laid out no smaller, and scaled down instead.
        sheet: Dress it in this theme's style sheet, where it has none of its own.
    """
    from explorer.ui.style_sheet import style_sheet

    if sheet is not None:
        widget.setPalette(palette(sheet))
        widget.setStyleSheet(style_sheet(sheet))
    factor = min(rect.width() / least[0], rect.height() / least[1], 1.0)
    widget.resize(round(rect.width() / factor), round(rect.height() / factor))
    # Shown, though on no screen: parts of a hidden widget are not laid out to their least sizes.
    widget.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    # A least size that changes after that makes platforms without a screen warn of it.
    widget.setMinimumSize(1, 1)
    widget.show()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)
    painter.save()
    painter.translate(rect.topLeft())
    painter.scale(factor, factor)
    # Plots draw their lines as paths with whatever brush they find, which would fill their bends.
    painter.setBrush(Qt.BrushStyle.NoBrush)
    flags = QWidget.RenderFlag.DrawChildren
    if sheet is None:
        flags |= QWidget.RenderFlag.DrawWindowBackground
    with widened(widget, painter):
        widget.render(painter, QPoint(0, 0), renderFlags=flags)
    painter.restore()
    widget.hide()
    widget.deleteLater()


def _zoom(rect: QRectF, width: float, height: float) -> float:
    """Enlarge a small view's fonts with the picture, so that they can be read on a slide."""
    return min(max(min(rect.width() / width, rect.height() / height), 0.8), 3.0)


def _chains(runs: Sequence[Run]) -> str:
    return ", ".join(
        dict.fromkeys(
            with_direction(run.chain.title or run.chain.name, run.chain.direction) for run in runs
        )
    )
