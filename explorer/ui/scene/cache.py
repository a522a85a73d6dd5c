"""Keeps the parts of a scene that stand still, for a view that draws many frames of it."""

from collections import OrderedDict

from PySide6.QtGui import QImage


class SceneCache:
    """Pictures of what stands still between two changes of state, for one view on screen."""

    def __init__(self, most: int = 3) -> None:
        """Keep the last ``most`` pictures; a full-screen one takes 8 MB."""
        self._most = most
        self._images: OrderedDict[tuple[object, ...], QImage] = OrderedDict()

    def get(self, key: tuple[object, ...]) -> QImage | None:
        """The picture of a state, if it was drawn."""
        return self._images.get(key)

    def put(self, key: tuple[object, ...], image: QImage) -> None:
        """Keep a picture, and drop the oldest if there are too many."""
        self._images[key] = image
        while len(self._images) > self._most:
            self._images.popitem(last=False)

    def clear(self) -> None:
        """Drop everything."""
        self._images.clear()
