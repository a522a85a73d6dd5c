"""Measures the chain library on a GPU: every chain under every strategy that applies to it.

``python tools/measure_library.py OUT [CHAIN...] [--backward] [--only SPEC] [--leave-out SPEC]``.
Each chain is run at its default size, and at each of the values that it compares; a recording a
chain, a table of all of them as ``library.csv``. Runs that are already there are kept, so that it
can be called again for the rest. Needs no window.
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
    "q3_us", "kernels_us", "speed_up", "verdict", "launches", "read_mb", "written_mb", "pedigree",
    "modelled_read_mb", "modelled_written_mb", "peak_mb", "floor_us", "share_of_floor", "passed",
    "error",
)  # fmt: skip


def main() -> None:
    """Measure what is asked for and write the table; Ctrl-C keeps what is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("chains", nargs="*", default=list(CHAINS))
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--timing-s", type=float, default=0.3)
    parser.add_argument("--only", action="append", default=[], metavar="SPEC")
    parser.add_argument("--leave-out", action="append", default=[], metavar="SPEC")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        with WorkerClient(None) as client:
            for name in options.chains:
                measure_chain(client, CHAINS[name], options)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        write_table(options.out)


def measure_chain(client: WorkerClient, chain: Chain, options: argparse.Namespace) -> None:
    """Add what is missing to a chain's recording."""
    if options.backward and not chain.trains:
        return
    direction = Direction.FORWARD_BACKWARD if options.backward else Direction.FORWARD
    path = options.out / f"{chain.id}{'-backward' if options.backward else ''}{SUFFIX}"
    there = load_recording(path) if path.exists() else ()
    made: list[Run] = []
    started_s = time.perf_counter()
    try:
        for request in points(chain, direction, options.device, options.timing_s):
            measure(client, request, options, there, made)
    finally:
        if made:
            save_recording(path, [*there, *made])
        took_s = time.perf_counter() - started_s
        sys.stdout.write(f"{path.name}: {len(there) + len(made)} runs, {took_s:.0f} s\n")
        sys.stdout.flush()


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
    request: RunRequest,
    options: argparse.Namespace,
    there: Sequence[Run],
    made: list[Run],
) -> None:
    """Run a request under every strategy that the worker says applies to it.

    Args:
        client: The worker.
        request: Without its strategies.
        options: Which not to run.
        there: Runs that need not be made again.
        made: Takes the new ones.
    """
    display = ProgressDisplay()
    try:
        specs = applicable(client, request, display)
        known = {*options.leave_out, *(run.strategy.spec for run in there if fits(run, request))}
        wanted = tuple(
            s for s in specs if s not in known and (not options.only or s in options.only)
        )
        if wanted:
            whole = replace(request, strategies=wanted)
            Measurement(client, whole, display, lambda runs: made.append(runs[-1])).measure()
    except ExplorerError as error:
        display.tell(f"{request.chain}: {error}")
    finally:
        display.close()


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
    if run.timing is not None and run.timing.launch_total_us is not None:
        found["kernels_us"] = round(run.timing.launch_total_us, 2)
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
