"""The kernel table's columns: one entry each, pure functions of a run's rows."""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.model.device import DeviceKind
from explorer.model.roofline import share_of_ceiling
from explorer.model.run import Bytes, Launch, LoopNest, Run
from explorer.model.traffic import achieved_bytes_per_s, model_difference
from explorer.ui.words import DASH, STALE_CEILINGS, percent, signed_percent

Value = str | int | float | None
LEAST_DECIMAL = 0.05
"""The least number that one decimal says something of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row: a launch, or a loop nest of a generated C++ function below its launch.

    Attributes:
        run: The run.
        launch: Index of the launch in it.
        nest: Index of the loop nest; None for the launch itself.
    """

    run: Run
    launch: int
    nest: int | None = None

    @property
    def of_launch(self) -> Launch:
        """The launch."""
        return self.run.launches[self.launch]

    @property
    def of_nest(self) -> LoopNest | None:
        """The loop nest, None for a launch's own row."""
        return None if self.nest is None else self.of_launch.loop_nests[self.nest]


def entries_of(run: Run) -> tuple[Entry, ...]:
    """Every row of a run, launches in order, each followed by its loop nests."""
    return tuple(
        Entry(run=run, launch=i, nest=nest)
        for i, launch in enumerate(run.launches)
        for nest in (None, *range(len(launch.loop_nests)))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    Attributes:
        key: For tests and for the copied text.
        title: In the header.
        about: What it is, for the header's tooltip.
        value: What is sorted and copied; None where there is none.
        text: What is shown for a value.
        missing: Why there is no value.
        is_number: Right-aligned.
        is_code: In the monospaced font.
    """

    key: str
    title: str
    about: str
    value: Callable[[Entry], Value]
    text: Callable[[Value], str] = str
    missing: Callable[[Entry], str] = lambda _: ""
    is_number: bool = True
    is_code: bool = False


def _of_launch(getter: Callable[[Launch], Value]) -> Callable[[Entry], Value]:
    """A value that only whole launches have."""
    return lambda entry: None if entry.nest is not None else getter(entry.of_launch)


def _megabytes(n_bytes: int | None) -> float | None:
    return None if n_bytes is None else n_bytes / 1e6


def _modelled(direction: str) -> Callable[[Entry], Value]:
    def value(entry: Entry) -> Value:
        nest = entry.of_nest
        if nest is not None:
            return _megabytes(getattr(nest, direction))
        n_bytes: Bytes = getattr(entry.of_launch, direction)
        return _megabytes(n_bytes.modelled)

    return value


def _counted(direction: str) -> Callable[[Entry], Value]:
    return _of_launch(lambda launch: _megabytes(getattr(launch, direction).counted))


def _difference(direction: str) -> Callable[[Entry], Value]:
    return _of_launch(lambda launch: model_difference(getattr(launch, direction)))


def _gigabytes_per_s(entry: Entry) -> Value:
    found = None if entry.nest is not None else achieved_bytes_per_s(entry.of_launch)
    return None if found is None else found[0] / 1e9


def _share(entry: Entry) -> Value:
    if entry.nest is not None:
        return None
    share = share_of_ceiling(entry.of_launch, entry.run.device.ceilings)
    return None if share is None or share > 1 else share


def _number(value: Value) -> str:
    """At a fixed number of decimals, so that digits stand below digits."""
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _mb_text(value: Value) -> str:
    """A decimal, and of what would round to nothing three digits or all bytes: ``0.00819``."""
    if not isinstance(value, float) or value == 0 or value >= LEAST_DECIMAL:
        return _number(value)
    digits = f"{value:.3g}"
    return f"{value:.6f}" if "e" in digits else digits


def _percent(value: Value) -> str:
    return percent(value) if isinstance(value, float) else str(value)


def _signed(value: Value) -> str:
    return signed_percent(value) if isinstance(value, float) else str(value)


def _sizes(sizes: tuple[int, int, int] | None) -> str | None:
    return None if sizes is None else " × ".join(f"{size:,}" for size in sizes)


def _number_of(entry: Entry) -> Value:
    return entry.launch + 1 + (0 if entry.nest is None else (entry.nest + 1) / 1000)


def _number_text(value: Value) -> str:
    if isinstance(value, float) and value % 1:
        return f"{int(value)}.{round(value % 1 * 1000)}"
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def _title(entry: Entry) -> Value:
    nest = entry.of_nest
    return entry.of_launch.title if nest is None else f"↳ {nest.name}"


def _ops(entry: Entry) -> Value:
    nest = entry.of_nest
    ops = entry.of_launch.ops if nest is None else nest.ops
    return " + ".join(ops) or ("helper" if entry.of_launch.is_helper else None)


def _why_no_time(entry: Entry) -> str:
    if entry.nest is not None:
        return "A loop nest has no time of its own: its function was timed as a whole."
    return "The trace says nothing of it."


def _why_not_counted(entry: Entry) -> str:
    if entry.nest is not None:
        return "A loop nest is not counted."
    counters = entry.run.counters
    if entry.of_launch.is_helper and counters is not None and counters.joined:
        return "Counters see kernels only, not copies and fills."
    return (counters.sentence if counters else "") or "Bytes were not counted in this run."


def _why_no_difference(entry: Entry) -> str:
    if entry.nest is None and entry.of_launch.bytes_read.counted is not None:
        return "The model knows of no bytes to compare with."
    return _why_not_counted(entry)


def _why_no_rate(entry: Entry) -> str:
    if entry.nest is not None:
        return _why_no_time(entry)
    if achieved_bytes_per_s(entry.of_launch) is None:
        return "Bytes or duration are not known."
    share = share_of_ceiling(entry.of_launch, entry.run.device.ceilings)
    if share is None:
        return "The device's ceilings were not measured; Measure in the roofline does it."
    return f"It comes out {STALE_CEILINGS}."


def _why_no_geometry(entry: Entry) -> str:
    if entry.run.device.kind is DeviceKind.CPU:
        return "A CPU's launches have none."
    return "The trace does not say."


def _why_no_spills(entry: Entry) -> str:
    if entry.run.device.kind is DeviceKind.CPU:
        return "A CPU's launches have none."
    return "Known for generated Triton kernels only."


COLUMNS: tuple[Column, ...] = (
    Column(
        key="number", title="#", about="Place in launch order.", value=_number_of,
        text=_number_text,
    ),
    Column(
        key="title", title="Launch", about="A short name that a person can read.", value=_title,
        is_number=False,
    ),
    Column(
        key="duration_us", title="Time µs", about="Duration, as traced.",
        value=_of_launch(lambda launch: launch.duration_us), text=_number, missing=_why_no_time,
    ),
    Column(
        key="read_modelled_mb", title="Read MB\nmodelled", about="Least bytes it must read.",
        value=_modelled("bytes_read"), text=_mb_text,
        missing=lambda _: "The model knows no tensor that it reads.",
    ),
    Column(
        key="read_counted_mb", title="Read MB\ncounted", about="By hardware counter.",
        value=_counted("bytes_read"), text=_mb_text, missing=_why_not_counted,
    ),
    Column(
        key="read_difference", title="Read\ndiffers", about="Counted against modelled.",
        value=_difference("bytes_read"), text=_signed, missing=_why_no_difference,
    ),
    Column(
        key="written_modelled_mb", title="Written MB\nmodelled", about="Least bytes it must write.",
        value=_modelled("bytes_written"), text=_mb_text,
        missing=lambda _: "The model knows no tensor that it writes.",
    ),
    Column(
        key="written_counted_mb", title="Written MB\ncounted", about="By hardware counter.",
        value=_counted("bytes_written"), text=_mb_text, missing=_why_not_counted,
    ),
    Column(
        key="written_difference", title="Written\ndiffers", about="Counted against modelled.",
        value=_difference("bytes_written"), text=_signed, missing=_why_no_difference,
    ),
    Column(
        key="gigabytes_per_s", title="GB/s", value=_gigabytes_per_s, text=_number,
        about="Bytes of the best pedigree over the traced duration.", missing=_why_no_rate,
    ),
    Column(
        key="share", title="Of\nceiling", about="GB/s over the device's measured ceiling.",
        value=_share, text=_percent, missing=_why_no_rate,
    ),
    Column(
        key="ops", title="Ops", about="The chain's ops that it carries out.", value=_ops,
        missing=lambda _: "No op of the chain was found for it.", is_number=False,
    ),
    Column(
        key="start_us", title="Start µs", about="Since the first launch, as traced.",
        value=_of_launch(lambda launch: launch.start_us), text=_number, missing=_why_no_time,
    ),
    Column(
        key="grid", title="Grid", about="Blocks in x, y, z.",
        value=_of_launch(lambda launch: _sizes(launch.grid)), missing=_why_no_geometry,
    ),
    Column(
        key="block", title="Block", about="Threads a block in x, y, z.",
        value=_of_launch(lambda launch: _sizes(launch.block)), missing=_why_no_geometry,
    ),
    Column(
        key="registers", title="Registers", about="Registers a thread.",
        value=_of_launch(lambda launch: launch.registers), missing=_why_no_geometry,
    ),
    Column(
        key="spills", title="Spills", about="Register spills a thread, as Triton reports them.",
        value=_of_launch(lambda launch: launch.spills), missing=_why_no_spills,
    ),
    Column(
        key="kernel", title="Kernel", about="The name as launched.",
        value=lambda entry: entry.of_launch.kernel if entry.nest is None else None,
        missing=lambda _: "Part of the function above.", is_number=False, is_code=True,
    ),
)  # fmt: skip


def cell_text(column: Column, entry: Entry) -> str:
    """What a cell shows: its value, or a dash."""
    value = column.value(entry)
    return DASH if value is None else column.text(value)


def as_tsv(entries: tuple[Entry, ...]) -> str:
    """Rows as tab-separated text with a header, values unrounded, empty where there is none."""
    lines = ["\t".join(column.key for column in COLUMNS)]
    for entry in entries:
        values = [column.value(entry) for column in COLUMNS]
        lines.append("\t".join("" if value is None else f"{value}" for value in values))
    return "\n".join(lines) + "\n"
