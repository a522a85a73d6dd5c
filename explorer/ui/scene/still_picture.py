"""The part of a scene that stands still, on a picture of its own: drawn at once or by and by."""

import time
from typing import TYPE_CHECKING

from PySide6.QtGui import QImage, QPainter

from explorer.model.playback import Moment, Playback
from explorer.ui.painting import antialias
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.layout import Layout
from explorer.ui.scene.options import SceneOptions
from explorer.ui.scene.still import still_steps
from explorer.ui.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Iterator

    from explorer.ui.scene.cache import Key


class StillPicture:
    """A picture that can be drawn in slices; however it is cut, the pixels are the same.

    Attributes:
        key: Equal for pictures that look alike.
    """

    def __init__(
        self,
        layout: Layout,
        playback: Playback,
        moments: tuple[Moment, ...],
        theme: Theme,
        options: SceneOptions,
        ratio: float,
    ) -> None:
        """Say what is to be drawn; nothing is drawn yet.

        Args:
            layout: Where things lie.
            playback: The runs.
            moments: The moment of each run.
            theme: Colours.
            options: What else the picture says.
            ratio: Pixels of the picture to one of the layout.
        """
        phases = tuple(moment.phases for moment in moments)
        self.key: Key = (layout, theme.name, phases, options.recorded, ratio)
        self._layout, self._theme, self._ratio = layout, theme, ratio
        self._painter = QPainter()
        canvas = Canvas(self._painter, theme, layout.u)
        self._steps: Iterator[None] = still_steps(canvas, layout, playback, moments, options)
        self._image: QImage | None = None

    def advance(self, budget_s: float) -> QImage | None:
        """Draw for about so long; returns the picture once it is whole."""
        image = self._image = self._image or self._blank()
        until_s = time.perf_counter() + budget_s
        painter = self._painter
        # Not kept open between slices: an image must not go while something paints on it.
        painter.begin(image)
        try:
            antialias(painter)
            painter.translate(-self._layout.frame.rect.topLeft())
            for _ in self._steps:
                if time.perf_counter() >= until_s:
                    return None
        finally:
            painter.end()
        return image

    def finish(self) -> QImage:
        """Draw what is left of it."""
        image = self.advance(float("inf"))
        assert image is not None, "without a limit it is drawn to its end"
        return image

    def _blank(self) -> QImage:
        rect = self._layout.frame.rect
        image = QImage(
            round(rect.width() * self._ratio),
            round(rect.height() * self._ratio),
            QImage.Format.Format_ARGB32_Premultiplied,
        )
        image.setDevicePixelRatio(self._ratio)
        image.fill(self._theme.color("bg"))
        return image
