"""What one changed link costs: seconds until a plan runs again, cold and from each cache.

``python tools/time_recompiles.py [CHAIN] [--device cuda]``. Three ways to the same plan, link by
link: with caches that never saw its groups, in a process that ran it before, and in a new process
that finds on disk what an earlier one compiled. Needs no window; prints one table.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One link of the plan that fuses everything, set to a boundary.

    Attributes:
        link: The ops above and below it.
        first_s: Seconds to build the plan the first time in a process.
        again_s: The second time, after another plan ran.
        groups: How many groups had to be compiled the first time, and the second.
    """

    link: str
    first_s: float
    again_s: float
    groups: tuple[int, int]


def main() -> None:
    """Run two processes on one set of caches and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chain", nargs="?", default="attention-scores")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        changes = time_changes(options.chain, options.device)
        sys.stdout.write(json.dumps([[c.link, c.first_s, c.again_s, c.groups] for c in changes]))
        return
    with tempfile.TemporaryDirectory() as caches:
        cold = run_child(options.chain, options.device, Path(caches))
        on_disk = run_child(options.chain, options.device, Path(caches))
    rows = [
        f"{a.link:24s} {a.first_s:8.3f} s {a.groups[0]} groups {a.again_s:10.4f} s "
        f"{a.groups[1]} groups {b.first_s:8.3f} s"
        for a, b in zip(cold, on_disk, strict=True)
    ]
    medians = (
        statistics.median(c.first_s for c in cold),
        statistics.median(c.again_s for c in cold),
        statistics.median(c.first_s for c in on_disk),
    )
    sys.stdout.write(
        f"{options.chain} on {options.device}: the plan that fuses everything, one link cut\n"
        f"{'link':24s} {'cold':>10s}          {'in the process':>14s}          {'on disk':>10s}\n"
        + "\n".join(rows)
        + f"\nmedians: {medians[0]:.3f} s, {medians[1]:.4f} s, {medians[2]:.3f} s\n"
    )


def run_child(chain: str, device: str, caches: Path) -> list[Change]:
    """Time every link in a process of its own that keeps what it compiles in a folder."""
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
    }
    done = subprocess.run(
        [sys.executable, __file__, chain, "--device", device, "--child"],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [
        Change(link=link, first_s=first_s, again_s=again_s, groups=(groups[0], groups[1]))
        for link, first_s, again_s, groups in json.loads(done.stdout)
    ]


def time_changes(chain: str, device: str) -> list[Change]:
    """Build the plan with everything fused, then cut one link after the other, twice."""
    from explorer.engine.devices import resolve_device
    from explorer.engine.prepare import prepare
    from explorer.engine.strategies import find_strategy
    from explorer.model.fusion import all_in_one, cut, fusable_links
    from explorer.model.strategies import plan_spec

    prepared = prepare(chain, {}, resolve_device(device))
    ops = [op.name for op in prepared.graph.ops]
    whole = all_in_one(ops)

    def build(text: str) -> tuple[float, int]:
        started_s = time.perf_counter()
        built = find_strategy(plan_spec(text)).build(prepared)
        built.close()
        seconds = time.perf_counter() - started_s
        return seconds, sum(not group.from_cache for group in built.groups)

    build(whole.text)
    links = fusable_links(prepared.graph)
    texts = [cut(whole, ops, *link).text for link in links]
    first = [build(text) for text in texts]
    again = [build(text) for text in texts]
    return [
        Change(link=" | ".join(link), first_s=a[0], again_s=b[0], groups=(a[1], b[1]))
        for link, a, b in zip(links, first, again, strict=True)
    ]


if __name__ == "__main__":
    main()
