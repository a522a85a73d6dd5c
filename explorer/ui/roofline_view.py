"""The roofline as a widget: a frame until it is filled, then the plot, or a sentence."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QStackedLayout, QVBoxLayout, QWidget
from typing_extensions import override

from explorer.model.device import Device
from explorer.model.roofline import roofline_point, roofs, why_no_point
from explorer.model.run import Run
from explorer.ui.roofline_picture import flops_unit, picture_of, picture_words
from explorer.ui.theme import DARK, Theme
from explorer.ui.words import run_title

if TYPE_CHECKING:
    from explorer.ui.roofline_plot import RooflinePlot


class _Frame(QWidget):
    """Axes without a plot: what is seen until pyqtgraph is there."""

    theme = DARK

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QPen(self.theme.color("line"), 1))
        inner = QRectF(self.rect()).adjusted(44, 10, -12, -40)
        painter.drawLine(inner.topLeft(), inner.bottomLeft())
        painter.drawLine(inner.bottomLeft(), inner.bottomRight())


class RooflineView(QWidget):
    """FLOP/s over arithmetic intensity, one mark a run, under the device's measured ceilings.

    Both axes are logarithmic. Runs come in through :meth:`set_runs`. Runs of another device than
    the shown one's have other roofs and are left out. Where the ceilings are unknown a sentence
    says so, with a button to measure them.

    Signals:
        measure_requested: The user wants the device's ceilings measured.
    """

    measure_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._runs: tuple[Run, ...] = ()
        self._shown = -1
        self._theme, self._zoom = DARK, 1.0
        self._plot: RooflinePlot | None = None
        self._frame = _Frame(self)
        self._sentence = QLabel(self)
        self._sentence.setObjectName("sentence")
        self._sentence.setWordWrap(True)
        self._sentence.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.measure_button = QPushButton("Measure", self)
        self.measure_button.setToolTip("Measure bandwidth and matmul rates of the device")
        self.measure_button.clicked.connect(self.measure_requested)
        told = QWidget(self)
        column = QVBoxLayout(told)
        column.addStretch(1)
        column.addWidget(self._sentence)
        column.addWidget(self.measure_button, 0, Qt.AlignmentFlag.AlignCenter)
        column.addStretch(1)
        self._told = told
        self._pages = QStackedLayout(self)
        self._pages.setContentsMargins(0, 0, 0, 0)
        self._pages.addWidget(self._frame)
        self._pages.addWidget(told)
        self.setAccessibleName("Roofline")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._refresh()

    @property
    def hint(self) -> str:
        """Unit of the vertical axis and pedigree of the bytes, for the panel's heading."""
        points = [point for run in self._alike() if (point := roofline_point(run))]
        if not points or not self._has_ceilings():
            return ""
        kinds = dict.fromkeys(point.pedigree.value for point in points)
        return f"{flops_unit(picture_of(self._runs, self._shown))[1]}  ·  bytes {' / '.join(kinds)}"

    @property
    def plot(self) -> "RooflinePlot | None":
        """The plot, None until it was made."""
        return self._plot

    @property
    def sentence(self) -> str:
        """What is said instead of a plot; empty while there is one."""
        return self._sentence.text() if self._pages.currentWidget() is self._told else ""

    def set_runs(self, runs: Sequence[Run], shown: int) -> None:
        """Plot these runs under the ceilings of ``runs[shown]``'s device; -1 for none."""
        self._runs, self._shown = tuple(runs), shown
        self._refresh()

    def set_can_measure(self, can: bool, why_not: str = "") -> None:
        """Whether the button can do something now; ``why_not`` says why it cannot."""
        self.measure_button.setEnabled(can)
        self.measure_button.setToolTip(
            "Measure bandwidth and matmul rates of the device" if can else why_not
        )

    def set_theme(self, theme: Theme) -> None:
        """Paint in another theme."""
        self._theme = self._frame.theme = theme
        self._refresh()

    def set_zoom_factor(self, zoom: float) -> None:
        """Enlarge fonts, for a talk."""
        self._zoom = zoom
        self._refresh()

    def fill_now(self) -> None:
        """Make the plot, whose import takes a third of a second if nobody did it before."""
        if self._plot is None:
            from explorer.ui.roofline_plot import RooflinePlot

            self._plot = RooflinePlot(self)
            self._pages.addWidget(self._plot)
        self._refresh()

    @override
    def sizeHint(self) -> QSize:
        return QSize(round(280 * self._zoom), round(300 * self._zoom))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(round(200 * self._zoom), round(160 * self._zoom))

    def _device(self) -> Device | None:
        return self._runs[self._shown].device if 0 <= self._shown < len(self._runs) else None

    def _has_ceilings(self) -> bool:
        device = self._device()
        return bool(
            device
            and device.ceilings
            and device.ceilings.memory_bytes_per_s > 0
            and roofs(device.ceilings, self._runs[self._shown].chain.dtype)
        )

    def _alike(self) -> list[Run]:
        device = self._device()
        return [run for run in self._runs if device and run.device.name == device.name]

    def _refresh(self) -> None:
        reason = self._why_no_plot()
        self.measure_button.setVisible(self._device() is not None and not self._has_ceilings())
        if reason:
            self._sentence.setText(reason)
            self._pages.setCurrentWidget(self._told)
            self.setAccessibleDescription(reason)
        elif self._plot is None:
            self._pages.setCurrentWidget(self._frame)
        else:
            self._show_plot(self._plot)

    def _show_plot(self, plot: "RooflinePlot") -> None:
        picture = picture_of(self._runs, self._shown)
        left_out = [
            f"{run_title(run)} has no mark: {why_no_point(run)}"
            for run in self._alike()
            if roofline_point(run) is None
        ]
        others = len(self._runs) - len(self._alike())
        if others:
            left_out.append(f"{others} of another device left out")
        plot.show_picture(picture, self._theme, self._zoom)
        self._pages.setCurrentWidget(plot)
        self.setAccessibleDescription(picture_words(picture, left_out))
        self.setToolTip("\n".join(left_out))

    def _why_no_plot(self) -> str:
        device = self._device()
        if device is None:
            return (
                "No run is shown yet: its arithmetic will stand here under what the device can do."
            )
        if not self._has_ceilings():
            return (
                f"The ceilings of {device.name} are not known. Measured once, they show how far "
                "each run is from what the device can do."
            )
        if all(roofline_point(run) is None for run in self._alike()):
            return f"No run can be placed. {why_no_point(self._runs[self._shown])}"
        return ""
