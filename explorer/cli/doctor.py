"""``kernel-explorer doctor``: what this machine can measure, what it cannot, and the remedy."""

from argparse import Namespace
from dataclasses import replace

from explorer.cli.ask import ask
from explorer.cli.progress import ProgressDisplay, starting
from explorer.cli.table import Column, render
from explorer.cli.terminal import DONE, write_json, write_lines
from explorer.model.codec import to_plain
from explorer.model.device import DeviceAbility
from explorer.model.doctor_words import table_lines
from explorer.model.messages import DoctorReport, DoctorRequest
from explorer.model.units import format_bytes
from explorer.ui.local_checks import local_checks
from explorer.worker.blocking import WorkerClient


def execute(options: Namespace) -> int:
    """Print the doctor's report.

    Raises:
        ExplorerError: There is no report; the sentence says why.
    """
    display = ProgressDisplay()
    try:
        with WorkerClient(options.worker_python) as client:
            found = examine(client, display)
    finally:
        display.close()
    found = replace(found, checks=(*found.checks, *local_checks()))
    if options.json:
        write_json(to_plain(found))
    else:
        write_lines(_describe(found))
    return DONE


def examine(client: WorkerClient, display: ProgressDisplay) -> DoctorReport:
    """Ask a worker for its report.

    Raises:
        ExplorerError: It cannot give one.
    """
    display.update(starting())
    return ask(client, DoctorRequest(), DoctorReport, display)


def _describe(found: DoctorReport) -> list[str]:
    abilities = found.abilities
    versions = [f"Kernel Explorer {abilities.versions.explorer}"]
    versions += [
        f"{name} {version}"
        for name, version in (
            ("Python", abilities.versions.python),
            ("torch", abilities.versions.torch),
            ("triton", abilities.versions.triton),
            ("CUDA", abilities.versions.cuda),
            ("CUPTI", abilities.versions.cupti),
        )
        if version
    ]
    lines = [", ".join(versions)]
    lines += [f"note: {warning}" for warning in abilities.warnings]
    for ability in abilities.devices:
        lines += ["", *_describe_device(ability, ability.device.id == abilities.default_device)]
    return [*lines, "", *table_lines(found.checks)]


def _describe_device(ability: DeviceAbility, is_default: bool) -> list[str]:
    device = ability.device
    facts = [f"{format_bytes(device.memory_bytes)} of {device.memory_name}"]
    facts.append(f"{format_bytes(device.free_bytes)} free")
    facts.append(f"last-level cache {format_bytes(device.l2_bytes)}")
    if device.driver:
        facts.append(f"driver {device.driver}")
    strategies = render(
        [Column(title=title, is_text=True) for title in ("strategy", "can run", "why not")],
        [
            [strategy.spec, "yes" if strategy.available else "no", strategy.reason or ""]
            for strategy in ability.strategies
        ],
    )
    return [
        f"{device.id}: {device.name}{' (the default)' if is_default else ''}",
        f"  {', '.join(facts)}",
        f"  bytes: {'counted' if ability.counters else 'modelled'}. {ability.counters_sentence}",
        *_dtypes(ability),
        *[f"  {line}" for line in (strategies if ability.strategies else [])],
    ]


def _dtypes(ability: DeviceAbility) -> list[str]:
    """What the device computes in, then a line for each dtype that it lacks."""
    has = ", ".join(dtype.name for dtype in ability.dtypes if dtype.available)
    lacks = [f"  no {dtype.name}: {dtype.reason}" for dtype in ability.dtypes if dtype.reason]
    return [f"  computes in {has}", *lacks] if ability.dtypes else []
