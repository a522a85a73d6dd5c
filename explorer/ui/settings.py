"""What the window remembers between starts: theme, size and shares, in the user's own folder.

Whatever is missing, damaged or out of range is ignored, value by value: a window that does not
open because of its own notes would be worse than one that forgot them.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSettings, QStandardPaths

from explorer.model.own_code import OwnCode
from explorer.ui.theme import THEMES

FOLDER, FILE = "kernel-explorer", "window.ini"
MOST_PX = 16384
"""A larger window than any screen."""
MOST_RECENT = 5
_LEAST_SHARE = 0.02


def settings_path() -> Path:
    """The file, in the folder that the desktop keeps settings in."""
    location = QStandardPaths.StandardLocation.GenericConfigLocation
    return Path(QStandardPaths.writableLocation(location)) / FOLDER / FILE


class Settings:
    """Reads and writes one file; a file that cannot be written is left as it is."""

    def __init__(self, path: Path) -> None:
        self._kept = QSettings(str(path), QSettings.Format.IniFormat)

    @property
    def theme(self) -> str | None:
        """Name of the theme."""
        name = self._kept.value("theme")
        return name if isinstance(name, str) and name in THEMES else None

    @theme.setter
    def theme(self, name: str) -> None:
        self._kept.setValue("theme", name)

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of the window, in pixels."""
        numbers = self._numbers("size")
        if len(numbers) != 2 or not all(1 <= number <= MOST_PX for number in numbers):
            return None
        return round(numbers[0]), round(numbers[1])

    @size.setter
    def size(self, size: tuple[int, int]) -> None:
        self._write("size", size)

    @property
    def is_maximized(self) -> bool:
        """Whether the window filled the screen."""
        return bool(self._kept.value("maximized") == "true")

    @is_maximized.setter
    def is_maximized(self, is_maximized: bool) -> None:
        self._kept.setValue("maximized", "true" if is_maximized else "false")

    def shares(self, splitter: str, n_parts: int) -> list[float] | None:
        """How a splitter shares its length out, where someone moved it."""
        numbers = self._numbers(f"shares/{splitter}")
        fits = len(numbers) == n_parts and all(number >= _LEAST_SHARE for number in numbers)
        return numbers if fits and abs(sum(numbers) - 1) < 0.01 else None

    def keep_shares(self, splitter: str, shares: Sequence[float]) -> None:
        """Keep how a splitter shares its length out."""
        self._write(f"shares/{splitter}", [round(share, 4) for share in shares])

    @property
    def recent_own(self) -> tuple[tuple[str, OwnCode], ...]:
        """The own code opened last, newest first: its name and how it was called."""
        kept = self._kept.value("own/recent")
        try:
            entries = json.loads(kept) if isinstance(kept, str) else []
        except ValueError:
            return ()
        found = []
        for entry in entries if isinstance(entries, list) else []:
            match entry:
                case {
                    "chain": str(chain),
                    "inputs": str(inputs),
                    "init": str(init),
                    "training": bool(training),
                }:
                    found.append((chain, OwnCode(inputs=inputs, init=init, training=training)))
        return tuple(found[:MOST_RECENT])

    def remember_own(self, chain: str, own: OwnCode) -> None:
        """Put own code in front of what was opened before; the same code stands there once."""
        others = [each for each in self.recent_own if each[0] != chain]
        entries = [
            {"chain": name, "inputs": each.inputs, "init": each.init, "training": each.training}
            for name, each in [(chain, own), *others][:MOST_RECENT]
        ]
        self._kept.setValue("own/recent", json.dumps(entries))

    def sync(self) -> None:
        """Write what is to be kept, if the file can be written."""
        self._kept.sync()

    def _write(self, key: str, numbers: Sequence[float]) -> None:
        self._kept.setValue(key, " ".join(map(str, numbers)))

    def _numbers(self, key: str) -> list[float]:
        text = self._kept.value(key)
        if not isinstance(text, str):
            return []
        try:
            # NaN fits no range.
            return [float(word) for word in text.split()]
        except ValueError:
            return []
