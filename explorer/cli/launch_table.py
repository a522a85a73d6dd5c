"""The launches of a run as text: what each read and wrote, modelled and counted side by side."""

from collections.abc import Callable

from explorer.cli.table import Column, render, shortened
from explorer.cli.terminal import paragraphs
from explorer.model.run import Bytes, Launch, LoopNest, Pedigree, Run
from explorer.model.traffic import (
    achieved_bytes_per_s,
    launch_traffic,
    model_difference,
    run_traffic,
    value_of,
)
from explorer.model.units import format_us, three_digits

TITLE_WIDTH = 64
KERNEL_WIDTH = 34
OPS_WIDTH = 28
LEAST_COMPARED_BYTES = 500_000
"""Below it a difference in per cent says nothing: a seed of 8 bytes is -100 % off."""
NOTHING = "–"


def launch_lines(run: Run) -> list[str]:
    """A heading and one row a launch, with a sum below."""
    pedigrees = _pedigrees(run)
    has_difference = Pedigree.MODELLED in pedigrees and Pedigree.COUNTED in pedigrees
    columns = [
        Column(title="#"),
        Column(title="launch", is_text=True),
        Column(title="kernel", is_text=True),
        Column(title="ops", is_text=True),
        Column(title="µs"),
        *_byte_columns("MB read", pedigrees, has_difference=has_difference),
        *_byte_columns("MB written", pedigrees, has_difference=has_difference),
        Column(title="GB/s"),
    ]

    def cells(n_bytes: Bytes) -> list[str]:
        return _byte_cells(n_bytes, pedigrees, has_difference=has_difference)

    rows: list[list[str]] = []
    for number, launch in enumerate(run.launches, start=1):
        rows.append(_launch_row(number, launch, cells))
        rows += [_nest_row(nest, cells) for nest in launch.loop_nests]
    rows += [[], _sum_row(run, cells)]
    return [*paragraphs([_heading(run)]), *render(columns, rows)]


def _pedigrees(run: Run) -> list[Pedigree]:
    """The pedigrees that any launch has, the plan only where there is nothing better."""
    found = [
        pedigree
        for pedigree in (Pedigree.MODELLED, Pedigree.COUNTED, Pedigree.SAMPLED)
        if any(
            value_of(launch.bytes_read, pedigree) is not None
            or value_of(launch.bytes_written, pedigree) is not None
            for launch in run.launches
        )
    ]
    return found or [Pedigree.PLANNED]


def _byte_columns(group: str, pedigrees: list[Pedigree], *, has_difference: bool) -> list[Column]:
    columns = [Column(title=pedigree.value, group=group) for pedigree in pedigrees]
    return [*columns, Column(title="more", group=group)] if has_difference else columns


def _byte_cells(n_bytes: Bytes, pedigrees: list[Pedigree], *, has_difference: bool) -> list[str]:
    cells = [_megabytes(value_of(n_bytes, pedigree)) for pedigree in pedigrees]
    if has_difference:
        difference = model_difference(n_bytes)
        is_small = max(n_bytes.modelled or 0, n_bytes.counted or 0) < LEAST_COMPARED_BYTES
        cells.append(NOTHING if difference is None or is_small else f"{difference:+.1%}")
    return cells


def _megabytes(n_bytes: int | None) -> str:
    if n_bytes is None:
        return NOTHING
    # Eight bytes of a seed are not nothing.
    return "<0.001" if 0 < n_bytes < 500 else three_digits(n_bytes / 1e6)


def _launch_row(number: int, launch: Launch, cells: Callable[[Bytes], list[str]]) -> list[str]:
    rate = achieved_bytes_per_s(launch)
    return [
        str(number),
        shortened(launch.title, TITLE_WIDTH),
        shortened(launch.kernel, KERNEL_WIDTH),
        shortened("+".join(launch.ops) or ("helper" if launch.is_helper else NOTHING), OPS_WIDTH),
        NOTHING if launch.duration_us is None else three_digits(launch.duration_us),
        *cells(launch.bytes_read),
        *cells(launch.bytes_written),
        NOTHING if rate is None else three_digits(rate[0] / 1e9),
    ]


def _nest_row(nest: LoopNest, cells: Callable[[Bytes], list[str]]) -> list[str]:
    return [
        "",
        f"  {nest.name}",
        "",
        shortened("+".join(nest.ops), OPS_WIDTH),
        "",
        *cells(Bytes(modelled=nest.bytes_read)),
        *cells(Bytes(modelled=nest.bytes_written)),
        "",
    ]


def _sum_row(run: Run, cells: Callable[[Bytes], list[str]]) -> list[str]:
    traffic = run_traffic(run)
    durations = [launch.duration_us for launch in run.launches if launch.duration_us is not None]
    is_whole = len(durations) == len(run.launches)
    return [
        "",
        "sum",
        "",
        "",
        three_digits(sum(durations)) if is_whole else NOTHING,
        *cells(traffic.bytes_read),
        *cells(traffic.bytes_written),
        "",
    ]


def _heading(run: Run) -> str:
    count = len(run.launches)
    parts = [f"{run.strategy.spec}: {count} launch{'' if count == 1 else 'es'}"]
    if run.timing is not None and run.timing.trace_total_us is not None:
        parts.append(f"{format_us(run.timing.trace_total_us)} from first to last, traced")
    rated = {best[2] for launch in run.launches if (best := launch_traffic(launch).best)}
    if rated:
        strongest_first = (pedigree for pedigree in reversed(Pedigree) if pedigree in rated)
        parts.append(f"GB/s of the {', else the '.join(strongest_first)} bytes")
    return ", ".join(parts)
