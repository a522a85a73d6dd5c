"""A sweep as a widget: what it found in words, the plot, and the plans as a list."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from explorer.model.fusion import FusionPlan
from explorer.model.run import Run
from explorer.model.sweep import Sweep
from explorer.model.sweep_words import findings, pedigree_words, short_finding
from explorer.ui.panel import label, wrapped
from explorer.ui.status_line import ElidedLabel
from explorer.ui.sweep_list import SweepList
from explorer.ui.sweep_picture import picture_of, picture_words
from explorer.ui.theme import DARK, Theme
from explorer.ui.words import SEPARATOR

if TYPE_CHECKING:
    from explorer.ui.sweep_picture import SweepPicture
    from explorer.ui.sweep_plot import SweepPlot

LIST_SHARE, TALL_LIST_SHARE = 0.58, 0.47
"""Of the width, at most, for the list beside the plot; less where the plot can be large."""
WORDS_SHARE = 0.21
"""Of the height: where all findings need more, the most telling one stands there in short."""
WORDS_PX = 13


class SweepView(QWidget):
    """Time over traffic of every plan that ran, with the list of them beside it.

    The sweep comes in through :meth:`set_sweep`. While there is none, a sentence says what one is.

    Signals:
        run_picked: A run that was clicked, or Enter pressed on.
        sweep_requested: The plans that are missing are to be run.
    """

    run_picked = Signal(object)
    sweep_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sweep: Sweep | None = None
        self._shown: Run | None = None
        self._current: FusionPlan | None = None
        self._theme, self._zoom = DARK, 1.0
        self._plot: SweepPlot | None = None
        self._heading = ElidedLabel("sweepFinding")
        self._findings = label("", "sweepFinding")
        self._findings.setWordWrap(True)
        self.list = SweepList()
        self.list.run_picked.connect(self.run_picked)
        self.button, self._rest = (_button() for _ in range(2))
        for button in (self.button, self._rest):
            button.clicked.connect(self.sweep_requested)
        self._sentence = label("", "sentence")
        self._sentence.setWordWrap(True)
        self._sentence.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._reason = label("", "muted")
        self._reason.setWordWrap(True)
        self._reason.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._pages = QStackedLayout(self)
        self._pages.setContentsMargins(0, 0, 0, 0)
        self._filled, self._told = self._filled_page(), self._told_page()
        self._pages.addWidget(self._told)
        self._pages.addWidget(self._filled)
        self.setAccessibleName("Sweep")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.set_start("", "", 0)

    @property
    def hint(self) -> str:
        """How many plans, and how their numbers were taken, for the panel's heading."""
        sweep = self._sweep
        if sweep is None:
            return ""
        n_plans = len(sweep.points)
        many = f"{n_plans} plan{'' if n_plans == 1 else 's'}"
        if sweep.possible is not None and sweep.done < sweep.possible:
            many = f"{sweep.done} of {sweep.possible} plans"
        condition = sweep.condition.value if sweep.condition else "not timed"
        return SEPARATOR.join((many, condition, pedigree_words(sweep)))

    @property
    def plot(self) -> "SweepPlot | None":
        """The plot, None until it was made."""
        return self._plot

    @property
    def sentence(self) -> str:
        """What is said in the place of a plot; empty while there is one."""
        return self._sentence.text() if self._pages.currentWidget() is self._told else ""

    @property
    def finding(self) -> str:
        """What stands above the plot."""
        if self._pages.currentWidget() is self._told:
            return ""
        return self._findings.text() if self._findings.isVisibleTo(self) else self._heading.whole

    def set_sweep(
        self, sweep: Sweep | None, shown: Run | None = None, current: FusionPlan | None = None
    ) -> None:
        """Show a sweep.

        Args:
            sweep: What ran; None for the sentence that says what a sweep is.
            shown: The run that the window shows.
            current: The plan that is being drawn.
        """
        self._sweep, self._shown, self._current = sweep, shown, current
        self._refresh()

    def set_start(self, sentence: str, why_not: str, missing: int, elsewhere: str = "") -> None:
        """What the button would run.

        Args:
            sentence: What a sweep is and how many plans the chosen chain has.
            why_not: Why it cannot be started now; empty if it can.
            missing: How many plans have no run yet.
            elsewhere: What they are plans of where that is not what the shown sweep is of, such as
                ``of attention``.
        """
        self._sentence.setText(sentence)
        self._reason.setText(why_not)
        self._reason.setVisible(bool(why_not))
        title = f"Run all {missing} plans" if missing else "Run all plans"
        self.button.setText(title)
        rest = f"Run {missing} plans {elsewhere}" if elsewhere else f"Run {missing} more"
        self._rest.setText(rest if missing else "")
        self._rest.setVisible(missing > 0)
        for button in (self.button, self._rest):
            button.setEnabled(not why_not)
            tip = why_not or "Compile, check and time each plan that has no run yet"
            button.setToolTip(wrapped(tip))
            button.setAccessibleName(button.text() or "Run the plans that are missing")
            button.setAccessibleDescription(tip)

    def set_switches(self, above_plot: QWidget, above_sentence: QWidget) -> None:
        """Put something before the heading, and above the sentence that stands for a sweep."""
        self._head.insertWidget(0, above_plot, 0, Qt.AlignmentFlag.AlignTop)
        self._told_column.insertWidget(0, above_sentence, 0, Qt.AlignmentFlag.AlignLeft)

    def without_buttons(self) -> None:
        """For a picture, in which nothing can be pressed."""
        for button in (self.button, self._rest):
            button.setParent(None)

    def set_theme(self, theme: Theme) -> None:
        """Paint in another theme."""
        self._theme = theme
        self._refresh()

    def set_zoom_factor(self, zoom: float) -> None:
        """Enlarge fonts, for a talk."""
        self._zoom = zoom
        size = f"font-size: {round(WORDS_PX * zoom)}px"
        for words in (self._heading, self._findings, self._caption, self._why_no_plot):
            words.setStyleSheet(size)
        self._refresh()

    def fill_now(self) -> None:
        """Make the plot, whose import takes a third of a second if nobody did it before."""
        if self._plot is None:
            from explorer.ui.sweep_plot import SweepPlot

            self._plot = SweepPlot()
            self._plot.mark_picked.connect(self._on_mark)
            self._plot_place.addWidget(self._plot)
        self._refresh()

    @override
    def sizeHint(self) -> QSize:
        return QSize(760, 240)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(round(300 * self._zoom), round(120 * self._zoom))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_room()

    def _filled_page(self) -> QWidget:
        page = QWidget(self)
        head = self._head = QHBoxLayout()
        head.setSpacing(10)
        head.addWidget(self._heading, 1)
        head.addWidget(self._findings, 1)
        head.addWidget(self._rest, 0, Qt.AlignmentFlag.AlignTop)
        self._why_no_plot = label("", "sentence")
        self._why_no_plot.setWordWrap(True)
        self._why_no_plot.setAlignment(Qt.AlignmentFlag.AlignCenter)
        plot = QWidget()
        self._plot_place = QStackedLayout(plot)
        self._plot_place.setContentsMargins(0, 0, 0, 0)
        self._plot_place.addWidget(self._why_no_plot)
        self._caption = ElidedLabel("panelHint")
        left = QVBoxLayout()
        left.setSpacing(0)
        left.addWidget(self._caption)
        left.addWidget(plot, 1)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addLayout(left, 1)
        row.addWidget(self.list)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 2, 0, 0)
        column.setSpacing(4)
        column.addLayout(head)
        column.addLayout(row, 1)
        return page

    def _told_page(self) -> QWidget:
        page = QWidget(self)
        column = self._told_column = QVBoxLayout(page)
        column.setContentsMargins(0, 2, 0, 0)
        column.setSpacing(8)
        column.addStretch(1)
        column.addWidget(self._sentence)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self._reason)
        column.addStretch(1)
        return page

    def _refresh(self) -> None:
        sweep = self._sweep
        self.list.set_looks(self._theme, self._zoom)
        self._pages.setCurrentWidget(self._told if sweep is None else self._filled)
        if sweep is None:
            self.list.set_sweep(None, None)
            self.setAccessibleDescription(self._sentence.text())
            return
        found = findings(sweep)
        self._heading.set_whole(short_finding(sweep))
        self._heading.setToolTip(wrapped("\n".join(found)))
        self._findings.setText("\n".join(found))
        self.list.set_sweep(sweep, self._shown)
        picture = picture_of(sweep, self._shown, self._current)
        self._show_picture(picture)
        self.setAccessibleDescription(picture_words(picture, found) if picture else " ".join(found))
        self._share_room()

    def _show_picture(self, picture: "SweepPicture | None") -> None:
        if picture is None:
            self._why_no_plot.setText(
                "No plan can be placed yet: a mark needs a time, and bytes known of every plan."
            )
            self._plot_place.setCurrentWidget(self._why_no_plot)
            self._caption.set_whole("")
            return
        self._caption.set_whole(picture.caption)
        self._caption.setToolTip(wrapped(picture.about))
        if self._plot is not None:
            self._plot.show_picture(picture, self._theme, self._zoom)
            self._plot_place.setCurrentWidget(self._plot)

    def _share_room(self) -> None:
        """Write out what there is room for; give the list what it wants and the plot the rest."""
        needed = self._findings.heightForWidth(max(self.width() - 20, 1))
        has_several = "\n" in self._findings.text()
        is_tall = has_several and needed <= WORDS_SHARE * self.height()
        self._findings.setVisible(is_tall)
        self._heading.setVisible(not is_tall)
        share = TALL_LIST_SHARE if is_tall else LIST_SHARE
        self.list.setFixedWidth(min(self.list.wanted_px(), round(share * self.width())))

    def _on_mark(self, number: int) -> None:
        picture = self._plot.picture if self._plot is not None else None
        if picture is not None:
            self.run_picked.emit(picture.marks[number].run)


def _button() -> QPushButton:
    made = QPushButton()
    made.setObjectName("small")
    return made
