"""A parameter sweep as a widget: what to run, what it found in words, and plots side by side."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QSizePolicy,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from explorer.model.param_sweep import ParameterSweep
from explorer.model.param_sweep_words import findings, heading, short_finding, values_text
from explorer.model.run import Run
from explorer.ui.controls import Picker
from explorer.ui.panel import label, wrapped
from explorer.ui.param_sweep_picture import Measure, ParamPicture, picture_words, pictures_of
from explorer.ui.status_line import ElidedLabel
from explorer.ui.theme import DARK, Theme

if TYPE_CHECKING:
    from explorer.ui.param_sweep_plot import ParamSweepPlot

LEAST_PLOT_PX = (330, 150)
"""Width and height that one plot needs, at zoom 1, before another one stands beside it."""
WORDS_PX = 13


class PlotCell(QWidget):
    """One plot below the picker of what it shows.

    Signals:
        run_picked: The run of a point that was clicked, or Enter pressed on.
        measure_picked: Another measure is to be shown here.
    """

    run_picked = Signal(object)
    measure_picked = Signal(str)

    def __init__(self, measure: Measure, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.measure = measure
        self.plot: ParamSweepPlot | None = None
        self.picker = Picker("Shown against the parameter")
        self.picker.setObjectName("caption")
        self.picker.addItems([each.value for each in Measure])
        self.picker.textActivated.connect(self.measure_picked)
        self.caption = ElidedLabel("panelHint")
        self._nothing = label("", "sentence")
        self._nothing.setWordWrap(True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        place = QWidget()
        self._place = QStackedLayout(place)
        self._place.setContentsMargins(0, 0, 0, 0)
        self._place.addWidget(self._nothing)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self.picker)
        head.addWidget(self.caption, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(place, 1)

    def fill(self) -> None:
        """Make the plot, whose import takes a third of a second if nobody did it before."""
        if self.plot is None:
            from explorer.ui.param_sweep_plot import ParamSweepPlot

            self.plot = ParamSweepPlot()
            self.plot.dot_picked.connect(self._on_dot)
            self._place.addWidget(self.plot)

    def show_picture(self, picture: ParamPicture | None, theme: Theme, zoom: float) -> None:
        """Show another picture; None where nothing is known of the measure."""
        self.picker.setCurrentText(self.measure.value)
        self.caption.setStyleSheet(f"font-size: {round(WORDS_PX * zoom)}px")
        if picture is None or self.plot is None:
            self.caption.set_whole("")
            self._nothing.setText(f"{self.measure.value}: no point has a value of it yet.")
            self._place.setCurrentWidget(self._nothing)
            return
        is_told = not self.picker.isHidden()
        self.caption.set_whole(picture.taken if is_told else picture.caption)
        self.plot.show_picture(picture, theme, zoom)
        self._place.setCurrentWidget(self.plot)

    def _on_dot(self, number: int) -> None:
        if self.plot is not None and self.plot.picture is not None:
            self.run_picked.emit(self.plot.picture.dots[number].run)


class ParamSweepView(QWidget):
    """Time, speed-up, traffic and peak memory over a parameter, as many as there is room for.

    The sweep comes in through :meth:`set_sweep`. While there is none, a sentence says what one is.

    Signals:
        run_picked: The run of a point that was picked.
    """

    run_picked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sweep: ParameterSweep | None = None
        self._shown: Run | None = None
        self._theme, self._zoom = DARK, 1.0
        self._pictures: dict[Measure, ParamPicture] = {}
        self._heading = ElidedLabel("sweepFinding")
        self._findings = label("", "sweepFinding")
        self._findings.setWordWrap(True)
        self._sentence = label("", "sentence")
        self._sentence.setWordWrap(True)
        self._sentence.setAlignment(Qt.AlignmentFlag.AlignCenter)
        plots = QWidget()
        self.cells = tuple(PlotCell(measure, plots) for measure in Measure)
        for cell in self.cells:
            cell.run_picked.connect(self.run_picked)
            cell.measure_picked.connect(self._on_measure)
        self._grid = QGridLayout(plots)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(6)
        pages = QWidget()
        self._pages = QStackedLayout(pages)
        self._pages.setContentsMargins(0, 0, 0, 0)
        self._pages.addWidget(self._sentence)
        self._pages.addWidget(plots)
        self._plots = plots
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 0, 0)
        column.setSpacing(3)
        # The plots take what there is, not the other way round.
        column.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        column.addWidget(self._heading)
        column.addWidget(self._findings)
        column.addWidget(pages, 1)
        self.setAccessibleName("Parameter sweep")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._refresh()

    @property
    def hint(self) -> str:
        """What was swept, for the panel's heading."""
        if self._sweep is None:
            return ""
        return f"{self._sweep.first.chain.title} · {self._sweep.name} {values_text(self._sweep)}"

    @property
    def sentence(self) -> str:
        """What is said in the place of plots; empty while there are some."""
        return self._sentence.text() if self._sweep is None else ""

    @property
    def finding(self) -> str:
        """What stands above the plots."""
        if self._sweep is None:
            return ""
        return self._findings.text() if self._findings.isVisibleTo(self) else self._heading.whole

    @property
    def shown_cells(self) -> tuple[PlotCell, ...]:
        """The plots that there is room for."""
        return tuple(cell for cell in self.cells if cell.isVisibleTo(self))

    def set_sentence(self, sentence: str) -> None:
        """What is said while there is no sweep."""
        self._sentence.setText(sentence)

    def set_sweep(self, sweep: ParameterSweep | None, shown: Run | None = None) -> None:
        """Show a sweep; ``shown`` is the run that the window shows."""
        self._sweep, self._shown = sweep, shown
        self._refresh()

    def set_theme(self, theme: Theme) -> None:
        """Paint in another theme."""
        self._theme = theme
        self._refresh()

    def set_zoom_factor(self, zoom: float) -> None:
        """Enlarge fonts, for a talk."""
        self._zoom = zoom
        for words in (self._heading, self._findings):
            words.setStyleSheet(f"font-size: {round(WORDS_PX * zoom)}px")
        self._refresh()

    def without_pickers(self) -> None:
        """For a picture, in which nothing can be picked: the captions say what is shown."""
        for cell in self.cells:
            cell.picker.hide()

    def fill_now(self) -> None:
        """Make the plots."""
        for cell in self.cells:
            cell.fill()
        self._refresh()

    @override
    def sizeHint(self) -> QSize:
        return QSize(760, 200)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(round(300 * self._zoom), round(110 * self._zoom))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_room()

    def _refresh(self) -> None:
        sweep = self._sweep
        self._pages.setCurrentWidget(self._sentence if sweep is None else self._plots)
        if sweep is None:
            self._pictures = {}
            for words in (self._heading, self._findings):
                words.hide()
            self.setAccessibleDescription(self._sentence.text())
            return
        found = findings(sweep)
        self._heading.set_whole(short_finding(sweep) or heading(sweep))
        self._heading.setToolTip(wrapped("\n".join(found)))
        self._findings.setText("\n".join(found))
        self._pictures = pictures_of(sweep, self._shown)
        time = self._pictures.get(Measure.TIME)
        self.setAccessibleDescription(picture_words(time, found) if time else " ".join(found))
        self._share_room()

    def _share_room(self) -> None:
        """Write out what there is room for, and show as many plots as can be read."""
        if self._sweep is None:
            return
        needed = self._findings.heightForWidth(max(self.width() - 4, 1))
        has_several = "\n" in self._findings.text()
        wide, high = (max(round(side * self._zoom), 1) for side in LEAST_PLOT_PX)
        is_tall = has_several and self.height() - needed >= high
        self._findings.setVisible(is_tall)
        self._heading.setVisible(not is_tall)
        words = needed if is_tall else self._heading.sizeHint().height()
        columns = min(max(self.width() // wide, 1), len(self.cells))
        rows = min(max((self.height() - words) // high, 1), -(-len(self.cells) // columns))
        if rows > 1 and columns > 2:
            # Four plots stand better two by two than three and one.
            columns = 2 if rows * 2 >= len(self.cells) and columns < len(self.cells) else columns
        self._lay_out(int(columns), int(rows))

    def _lay_out(self, columns: int, rows: int) -> None:
        for place, cell in enumerate(self.cells):
            is_seen = place < columns * rows
            if is_seen:
                self._grid.addWidget(cell, place // columns, place % columns)
                cell.show_picture(self._pictures.get(cell.measure), self._theme, self._zoom)
            else:
                self._grid.removeWidget(cell)
            cell.setVisible(is_seen)
        for i in range(len(self.cells)):
            self._grid.setColumnStretch(i, 1 if i < columns else 0)
            self._grid.setRowStretch(i, 1 if i < rows else 0)

    def _on_measure(self, name: str) -> None:
        """Show another measure in the plot whose picker was used; two plots change places."""
        wanted, cell = Measure(name), self.sender()
        if not isinstance(cell, PlotCell) or cell.measure is wanted:
            return
        other = next(each for each in self.cells if each.measure is wanted)
        other.measure, cell.measure = cell.measure, wanted
        self._share_room()
