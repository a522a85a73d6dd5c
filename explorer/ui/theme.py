"""Colours, fonts and sizes, in one table: no painter and no style sheet holds a literal of its own.

Colours were checked for contrast (text at least 7:1 on a panel) and, simulated for protanopia,
deuteranopia and tritanopia, for distance from each other.
"""

from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import as_file, files

from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """One look. Names say what a colour means, not what it is; values are ``#RRGGBB``.

    Attributes:
        name: ``dark`` or ``light``.
        bg: Behind everything.
        panel: A panel's face.
        raised: A control or a card on a panel.
        sunken: An empty slot, the inside of the chip.
        line: Borders and grid.
        text: Text.
        muted: Text of second rank.
        faint: Third rank: disabled, hints of lines.
        read: Bytes from memory.
        write: Bytes to memory.
        compute: An active kernel, a good state.
        fused: What shares a kernel.
        plain: An unfused launch, eager.
        cache: Requests that L2 served.
        playhead: The moment shown.
        warning: Something to know.
        wrong: A check that failed.
        on_accent: Text on a filled accent.
        memory_top: Upper end of the HBM band's gradient.
        memory_bottom: Its lower end.
        memory_line: Its border.
        tensor_input: Fill of a tensor that was there before.
        tensor_made: Fill of a tensor that a kernel writes.
        tensor_text: Text on a filled tensor.
        op: Face of an op's box.
    """

    name: str
    bg: str
    panel: str
    raised: str
    sunken: str
    line: str
    text: str
    muted: str
    faint: str
    read: str
    write: str
    compute: str
    fused: str
    plain: str
    cache: str
    playhead: str
    warning: str
    wrong: str
    on_accent: str
    memory_top: str
    memory_bottom: str
    memory_line: str
    tensor_input: str
    tensor_made: str
    tensor_text: str
    op: str

    def color(self, name: str, alpha: int = 255) -> QColor:
        """The colour of that name (an attribute), with ``alpha`` from 0 to 255."""
        color = QColor(getattr(self, name))
        color.setAlpha(alpha)
        return color

    def colors(self) -> dict[str, str]:
        """Every colour by name, for a style sheet."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


DARK = Theme(
    name="dark", bg="#0A0E16", panel="#111826", raised="#172133", sunken="#0C1320", line="#26344D",
    text="#EAF1FA", muted="#93A4BC", faint="#5B6B84", read="#56B4E9", write="#E69F00",
    compute="#2BC79A", fused="#D98CC0", plain="#6C7C96", cache="#A9B4C4", playhead="#F0E442",
    warning="#F08A4B", wrong="#FF8A84", on_accent="#0B111B", memory_top="#1B2A44",
    memory_bottom="#121C2E", memory_line="#33507A", tensor_input="#4C6FA8", tensor_made="#A87A1E",
    tensor_text="#FFFFFF", op="#12302F",
)  # fmt: skip

LIGHT = Theme(
    name="light", bg="#F2F5FA", panel="#FFFFFF", raised="#F3F6FB", sunken="#E8EDF5",
    line="#CBD5E3", text="#101826", muted="#4A5A72", faint="#8A98AD", read="#0072B2",
    write="#B35900", compute="#00795A", fused="#A8437F", plain="#8593A8", cache="#6B7789",
    playhead="#8A6D00", warning="#B23B00", wrong="#A8001C", on_accent="#FFFFFF",
    memory_top="#DCE7F6", memory_bottom="#EDF3FB", memory_line="#9DB4D6", tensor_input="#8FB3E0",
    tensor_made="#EDC078", tensor_text="#0B1526", op="#DDF1EA",
)  # fmt: skip

THEMES = {theme.name: theme for theme in (DARK, LIGHT)}

_SANS = ("Inter", "Noto Sans CJK SC")
_MONO = ("JetBrains Mono", "Noto Sans CJK SC")


@cache
def load_fonts() -> tuple[str, ...]:
    """Register the shipped fonts once an application; returns the families.

    Needs a QGuiApplication. A bare machine has no font at all, and another machine's Inter
    would move every label, so the shipped ones are always used.
    """
    families: list[str] = []
    with as_file(files("assets") / "fonts") as folder:
        for path in sorted([*folder.glob("*.ttf"), *folder.glob("*.otf")]):
            font_id = QFontDatabase.addApplicationFont(str(path))
            families += QFontDatabase.applicationFontFamilies(font_id)
    return tuple(dict.fromkeys(families))


@cache
def font(size_px: float, weight: int = 400, mono: bool = False, tabular: bool = False) -> QFont:
    """A shipped font, hinting off.

    Args:
        size_px: Height in pixels of the painter's coordinates.
        weight: 400, 500, 600 or 700.
        mono: The monospaced family, for names and code.
        tabular: Digits of equal width, for numbers that run or stand in a column. Not for words:
            it makes hyphens as wide as digits too.
    """
    made = QFont(list(_MONO if mono else _SANS))
    made.setPixelSize(max(1, round(size_px)))
    made.setWeight(QFont.Weight(weight))
    made.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    if tabular:
        made.setFeature(QFont.Tag("tnum"), 1)
    return made


def palette(theme: Theme) -> QPalette:
    """The Qt palette of a theme: ``setColorScheme`` is ignored on many desktops."""
    made = QPalette()
    role = QPalette.ColorRole
    for roles, name in (
        ((role.Window,), "bg"),
        ((role.Base, role.ToolTipBase), "panel"),
        ((role.Button, role.AlternateBase), "raised"),
        ((role.WindowText, role.Text, role.ButtonText, role.ToolTipText), "text"),
        ((role.Mid, role.Dark), "line"),
        ((role.Highlight, role.Link), "compute"),
        ((role.HighlightedText,), "on_accent"),
        ((role.PlaceholderText,), "muted"),
    ):
        for each in roles:
            made.setColor(each, theme.color(name))
    for each in (role.WindowText, role.Text, role.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, each, theme.color("faint"))
    return made
