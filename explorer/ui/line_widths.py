"""Lines of plots in pictures that have more pixels than the screen."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QGraphicsView, QWidget

if TYPE_CHECKING:
    from pyqtgraph import PlotCurveItem


@contextmanager
def widened(widget: QWidget, painter: QPainter) -> Iterator[None]:
    """As wide as on the screen, in proportion: pyqtgraph counts widths in pixels, whatever scale.

    Args:
        widget: Whose plots are painted meanwhile.
        painter: With the picture's scale.
    """
    factor = painter.deviceTransform().m11() / widget.devicePixelRatioF()
    before = [(curve, QPen(curve.opts["pen"])) for curve in _curves(widget)]
    for curve, pen in before:
        wide = QPen(pen)
        wide.setWidthF(pen.widthF() * factor)
        curve.setPen(wide)
    try:
        yield
    finally:
        for curve, pen in before:
            curve.setPen(pen)


def _curves(widget: QWidget) -> list["PlotCurveItem"]:
    """Every line of every plot in a widget; none before there was a plot."""
    if "pyqtgraph" not in sys.modules:
        return []
    from pyqtgraph import PlotCurveItem

    views = widget.findChildren(QGraphicsView)
    views += [widget] if isinstance(widget, QGraphicsView) else []
    return [item for view in views for item in view.items() if isinstance(item, PlotCurveItem)]
