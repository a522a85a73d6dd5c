"""Measures the chain library on a GPU: every chain under every strategy that applies to it.

``python tools/measure_library.py OUT [CHAIN...] [--backward] [--leave-out SPEC]``. Each chain is
run at its default size, and at each of the values that it compares; a recording a chain, a table
of all of them as ``library.csv``. Runs that are already there are kept, so that it can be called
again for the rest. Needs no window.
"""

import argparse
import csv
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

from explorer.chains import CHAINS  # noqa: E402 - the checkout first
from explorer.chains.descriptor import Chain  # noqa: E402
from explorer.cli.ask import ask  # noqa: E402
from explorer.cli.measure import Measurement  # noqa: E402
from explorer.cli.progress import ProgressDisplay  # noqa: E402
from explorer.model.comparison import find_baseline, headline, speed_up  # noqa: E402
from explorer.model.errors import ExplorerError  # noqa: E402
from explorer.model.messages import GraphCaptured, GraphRequest, RunRequest  # noqa: E402
from explorer.model.roofline import floor  # noqa: E402
from explorer.model.run import Direction, Pedigree, Run, Scalar  # noqa: E402
from explorer.model.strategies import plan_spec  # noqa: E402
from explorer.model.traffic import peak_bytes, run_traffic  # noqa: E402
from explorer.recording import SUFFIX, load_recording, save_recording  # noqa: E402
from explorer.worker.blocking import WorkerClient  # noqa: E402

PLANS = tuple(plan_spec(name) for name in ("each", "inductor", "all"))
COLUMNS = (
    "chain", "direction", "parameters", "dtype", "strategy", "backend", "median_us", "q1_us",
    "q3_us", "speed_up", "verdict", "launches", "read_mb", "written_mb", "pedigree",
    "modelled_read_mb", "modelled_written_mb", "peak_mb", "floor_us", "share_of_floor", "passed",
    "error",
)  # fmt: skip


def main() -> None:
    """Measure what is asked for and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("chains", nargs="*", default=list(CHAINS))
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--timing-s", type=float, default=0.3)
    parser.add_argument("--leave-out", action="append", default=[], metavar="SPEC")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    direction = Direction.FORWARD_BACKWARD if options.backward else Direction.FORWARD
    with WorkerClient(None) as client:
        for chain in (CHAINS[name] for name in options.chains):
            if options.backward and not chain.trains:
                continue
            ending = "-backward" if options.backward else ""
            path = options.out / f"{chain.id}{ending}{SUFFIX}"
            there = load_recording(path) if path.exists() else ()
            started_s = time.perf_counter()
            requests = points(chain, direction, options.device, options.timing_s)
            runs = [*there, *measure(client, requests, options.leave_out, there)]
            if len(runs) > len(there):
                save_recording(path, runs)
            took_s = time.perf_counter() - started_s
            sys.stdout.write(f"{path.name}: {len(runs)} runs, {took_s:.0f} s\n")
            sys.stdout.flush()
    write_table(options.out)


def points(
    chain: Chain, direction: Direction, device: str, timing_s: float
) -> Iterator[RunRequest]:
    """The requests of a chain: one a value that it compares, or one."""
    request = RunRequest(chain=chain.id, device=device, direction=direction, timing_s=timing_s)
    if chain.compared is None:
        yield request
        return
    for value in chain.compared_values:
        yield replace(request, parameters={chain.compared: value}, swept=chain.compared)


def measure(
    client: WorkerClient,
    requests: Iterator[RunRequest],
    left_out: Sequence[str],
    there: Sequence[Run],
) -> list[Run]:
    """Run each request under every strategy that the worker says applies to it.

    Args:
        client: The worker.
        requests: Without their strategies.
        left_out: Specs not to run.
        there: Runs that need not be made again.
    """
    display = ProgressDisplay()
    runs: list[Run] = []
    try:
        for request in requests:
            try:
                specs = applicable(client, request, display)
                known = {*left_out, *(run.strategy.spec for run in there if fits(run, request))}
                wanted = tuple(spec for spec in specs if spec not in known)
                if not wanted:
                    continue
                request = replace(request, strategies=wanted)  # noqa: PLW2901 - the same, complete
                measurement = Measurement(client, request, display, lambda _runs: None)
                measurement.measure()
            except ExplorerError as error:
                display.tell(f"{request.chain}: {error}")
                continue
            runs += measurement.runs
    finally:
        display.close()
    return runs


def fits(run: Run, request: RunRequest) -> bool:
    """Whether a run is one of a request's, and came about."""
    given = request.parameters.items()
    return run.error is None and all(run.chain.parameters.get(k) == v for k, v in given)


def applicable(
    client: WorkerClient, request: RunRequest, display: ProgressDisplay
) -> tuple[str, ...]:
    """Specs of the strategies that can run a request."""
    client.start()
    question = GraphRequest(
        chain=request.chain,
        parameters=request.parameters,
        device=request.device,
        direction=request.direction,
    )
    captured = ask(client, question, GraphCaptured, display)
    found = tuple(ability.spec for ability in captured.strategies if ability.available)
    return (*found, *PLANS)


def write_table(folder: Path) -> None:
    """Write ``library.csv``: a row a run of every recording in the folder."""
    with (folder / "library.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            runs = load_recording(path)
            writer.writerows(row(run, runs) for run in runs)


def row(run: Run, runs: Sequence[Run]) -> dict[str, Scalar]:
    """The figures of a run; what is not known is empty."""
    found: dict[str, Scalar] = dict.fromkeys(COLUMNS, "")
    timed, least, traffic = headline(run), floor(run), run_traffic(run)
    baseline = find_baseline(run, runs)
    gained = None if baseline is None or baseline is run else speed_up(run, baseline)
    found |= {
        "chain": run.chain.name,
        "direction": run.chain.direction.value,
        "parameters": " ".join(f"{name}={v}" for name, v in run.chain.parameters.items()),
        "dtype": run.chain.dtype,
        "strategy": run.strategy.spec,
        "backend": run.strategy.backend or "",
        "launches": len(run.launches),
        "error": run.error or "",
    }
    if timed is not None:
        found |= {
            "median_us": round(timed.samples.median_us, 2),
            "q1_us": round(timed.samples.q1_us, 2),
            "q3_us": round(timed.samples.q3_us, 2),
        }
        if least is not None:
            found["floor_us"] = round(least.time_us, 2)
            found["share_of_floor"] = round(least.time_us / timed.samples.median_us, 3)
    if gained is not None:
        found["verdict"] = gained.verdict.value
        found["speed_up"] = "" if gained.ratio is None else round(gained.ratio, 3)
    if traffic.best is not None:
        read, written, pedigree = traffic.best
        found |= {
            "read_mb": round(read / 1e6, 2),
            "written_mb": round(written / 1e6, 2),
            "pedigree": pedigree.value,
        }
    modelled = traffic.of(Pedigree.MODELLED)
    if modelled is not None:
        found["modelled_read_mb"] = round(modelled[0] / 1e6, 2)
        found["modelled_written_mb"] = round(modelled[1] / 1e6, 2)
    held = peak_bytes(run)
    if held is not None:
        found["peak_mb"] = round(held / 1e6, 2)
    if run.accuracy is not None:
        found["passed"] = run.accuracy.passed
    return found


if __name__ == "__main__":
    main()
