"""Keeps the parts of a scene that stand still, for a view that draws many frames of it."""

from collections import OrderedDict

from PySide6.QtGui import QImage

Key = tuple[object, ...]
LEAST_KEPT = 3
"""Pictures kept however large they are: the one on screen and its neighbours."""


class SceneCache:
    """Pictures of what stands still between two changes of state, for one view on screen."""

    def __init__(self, most_bytes: int = 96_000_000) -> None:
        """Keep the pictures used last, up to ``most_bytes``; a full-screen one takes 8 MB."""
        self._most_bytes = most_bytes
        self._images: OrderedDict[Key, QImage] = OrderedDict()

    def __contains__(self, key: Key) -> bool:
        return key in self._images

    def get(self, key: Key) -> QImage | None:
        """The picture of a state, if it was drawn."""
        image = self._images.get(key)
        if image is not None:
            self._images.move_to_end(key)
        return image

    def put(self, key: Key, image: QImage) -> None:
        """Keep a picture, and drop those not used for longest if there are too many."""
        self._images[key] = image
        while (
            len(self._images) > LEAST_KEPT
            and sum(kept.sizeInBytes() for kept in self._images.values()) > self._most_bytes
        ):
            self._images.popitem(last=False)

    def clear(self) -> None:
        """Drop everything."""
        self._images.clear()
