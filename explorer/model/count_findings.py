"""Modelled against counted, launch by launch: what the counters saw and the arguments do not tell.

Only differences above :data:`~explorer.model.finding.EXPLAINED_SHARE` of a launch's traffic are
looked into, and none below :data:`LEAST_SHARE_OF_RUN` of the run's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explorer.model.finding import EXPLAINED_SHARE, Evidence, Finding, FindingKind, Step
from explorer.model.read_causes import read_causes
from explorer.model.run import Launch, Pedigree, Run
from explorer.model.traffic import launch_traffic, run_traffic
from explorer.model.units import format_bytes

LEAST_SHARE_OF_RUN = 1e-3
"""Differences below this share of the run's traffic matter to nobody: a seed's few kilobytes."""
HELPER_SHARE = 0.01
"""Helpers that move less than this share of the run's traffic are not worth a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A launch whose counted bytes are held against its model."""

    run: Run
    index: int
    launch: Launch
    waiting: int
    """Bytes that earlier launches wrote by the model and no counter has seen leave L2."""

    @property
    def name(self) -> str:
        return launch_name(self.launch)

    def finding(
        self,
        kind: FindingKind,
        n_bytes: int,
        words: str,
        *more: str,
        evidence: Sequence[Evidence] = (),
    ) -> Finding:
        return Finding(
            kind=kind,
            step=Step.MODEL_TO_COUNT,
            n_bytes=n_bytes,
            sentence=" ".join([f"{self.name} {words}.", *more]),
            short=words,
            launch=self.index,
            ops=self.launch.ops,
            evidence=(*_counter_evidence(self.launch), *evidence),
        )


def launch_name(launch: Launch) -> str:
    """What a launch is called in a sentence: its ops, or its title if it is a helper."""
    return " + ".join(launch.ops) or launch.title


def count_findings(run: Run) -> tuple[Finding, ...]:
    """Every difference between model and counter that matters, in launch order."""
    best = run_traffic(run).best
    least = LEAST_SHARE_OF_RUN * (best[0] + best[1]) if best else 0.0
    found: list[Finding] = []
    waiting = 0
    for index, launch in enumerate(run.launches):
        moved = launch_traffic(launch)
        modelled, counted = moved.of(Pedigree.MODELLED), moved.of(Pedigree.COUNTED)
        if modelled is None or counted is None:
            continue
        case = _Case(run=run, index=index, launch=launch, waiting=waiting)
        waiting = max(0, waiting + modelled[1] - counted[1])
        slack = max(least, EXPLAINED_SHARE * max(sum(modelled), sum(counted)))
        read, written = counted[0] - modelled[0], counted[1] - modelled[1]
        if read > slack:
            found += _read_more(case, read)
        elif read < -slack:
            found.append(_read_less(case, read))
        if written > slack:
            found.append(_written_more(case, written, slack))
        elif written < -slack:
            found.append(_written_less(case, written))
    return (*found, *_helpers(run))


def _read_more(case: _Case, excess: int) -> Iterator[Finding]:
    launch = case.launch
    if launch.spills:
        yield case.finding(
            FindingKind.SPILLED,
            excess,
            f"reads {format_bytes(excess)} more than its arguments hold and spills "
            f"{launch.spills} registers a thread",
        )
        return
    causes = read_causes(case.run, launch, excess)
    for cause in causes:
        yield case.finding(
            cause.kind,
            cause.n_bytes,
            f"{cause.words}: {format_bytes(cause.n_bytes)} more",
            evidence=(*cause.evidence, *_fit(causes, excess)),
        )
    if not causes:
        yield case.finding(
            FindingKind.UNEXPLAINED,
            excess,
            f"reads {format_bytes(excess)} more than its arguments hold, cause not known",
            *_asked_again(launch, excess),
        )


def _fit(causes: Sequence[object], excess: int) -> tuple[Evidence, ...]:
    n_bytes = sum(getattr(cause, "n_bytes", 0) for cause in causes)
    together = f"{len(causes)} causes together" if len(causes) > 1 else "by the model"
    return (
        Evidence(
            "fit",
            f"{together} {format_bytes(n_bytes)}, counted beyond the model {format_bytes(excess)}",
        ),
    )


def _asked_again(launch: Launch, excess: int) -> tuple[str, ...]:
    """What L2's counter adds to a read of unknown cause."""
    asked = launch.l2_bytes_requested
    modelled = sum(access.bytes_read + access.bytes_written for access in launch.accesses)
    if asked is None or asked - modelled < excess:
        return ()
    return (
        f"It asked L2 for {format_bytes(asked)}, so some of its tensors are fetched more than "
        "once; the counters do not say which.",
    )


def _read_less(case: _Case, deficit: int) -> Finding:
    launch, l2_bytes = case.launch, case.run.device.l2_bytes
    counted = (launch.bytes_read.counted or 0) + (launch.bytes_written.counted or 0)
    spared = (launch.l2_bytes_requested or 0) - counted
    missing = -deficit
    # L2 cannot spare memory more than it holds, nor more than it was asked for.
    if missing <= l2_bytes and spared >= (1 - EXPLAINED_SHARE) * missing:
        return case.finding(
            FindingKind.FROM_L2,
            deficit,
            f"finds {format_bytes(missing)} of what it reads in L2, where the launches before "
            "left it",
            evidence=(
                Evidence(
                    "cache",
                    f"asked of L2 {format_bytes(launch.l2_bytes_requested or 0)}, moved by memory "
                    f"{format_bytes(counted)}; L2 holds {format_bytes(l2_bytes)}",
                ),
            ),
        )
    return case.finding(
        FindingKind.UNEXPLAINED,
        deficit,
        f"reads {format_bytes(missing)} less than its arguments hold, cause not known",
    )


def _written_more(case: _Case, excess: int, slack: float) -> Finding:
    launch, l2_bytes = case.launch, case.run.device.l2_bytes
    if launch.spills:
        return case.finding(
            FindingKind.SPILLED,
            excess,
            f"writes {format_bytes(excess)} more than its arguments hold and spills "
            f"{launch.spills} registers a thread",
        )
    if excess <= min(case.waiting, l2_bytes) + slack:
        return case.finding(
            FindingKind.LATE_WRITE,
            excess,
            f"ran while {format_bytes(excess)} of earlier launches' data left L2 for memory",
            evidence=(
                Evidence(
                    "cache",
                    f"earlier launches wrote {format_bytes(case.waiting)} that no counter had "
                    "seen leave L2",
                ),
            ),
        )
    more: tuple[str, ...] = ()
    if excess <= l2_bytes:
        more = ("It is no more than L2 can have held from before the call.",)
    return case.finding(
        FindingKind.UNEXPLAINED,
        excess,
        f"writes {format_bytes(excess)} more than its arguments hold, cause not known",
        *more,
    )


def _written_less(case: _Case, deficit: int) -> Finding:
    missing, l2_bytes = -deficit, case.run.device.l2_bytes
    settled = case.launch.bytes_written.settled
    if missing <= l2_bytes:
        evidence = [Evidence("cache", f"L2 holds {format_bytes(l2_bytes)}")]
        if settled is not None:
            evidence.append(
                Evidence("counter", f"with the write-back after it {format_bytes(settled)} written")
            )
        return case.finding(
            FindingKind.LATE_WRITE,
            deficit,
            f"leaves {format_bytes(missing)} of what it writes in L2; they reach memory later, "
            "if at all",
            evidence=evidence,
        )
    return case.finding(
        FindingKind.UNEXPLAINED,
        deficit,
        f"writes {format_bytes(missing)} less than its arguments hold, cause not known",
    )


def _helpers(run: Run) -> Iterator[Finding]:
    """Launches that the chain does not ask for and that move enough to matter, by title."""
    best = run_traffic(run).best
    least = HELPER_SHARE * (best[0] + best[1]) if best else 0.0
    by_title: dict[str, list[int]] = {}
    for index, launch in enumerate(run.launches):
        if launch.is_helper and launch_traffic(launch).best is not None:
            by_title.setdefault(launch.title, []).append(index)
    for title, indices in by_title.items():
        moved = [launch_traffic(run.launches[i]).best for i in indices]
        n_bytes = sum(each[0] + each[1] for each in moved if each is not None)
        if n_bytes <= least:
            continue
        times = f"{len(indices)} launches of {title} move" if len(indices) > 1 else f"{title} moves"
        short = f"{times} {format_bytes(n_bytes)} that the chain does not ask for"
        yield Finding(
            kind=FindingKind.HELPER,
            step=Step.MODEL_TO_COUNT,
            n_bytes=n_bytes,
            sentence=f"{short}.",
            short=short,
            launch=indices[0],
            evidence=tuple(Evidence("kernel", run.launches[i].kernel) for i in indices),
        )


def _counter_evidence(launch: Launch) -> tuple[Evidence, ...]:
    """Both ways of a launch, by counter and by model."""
    read, written = launch.bytes_read, launch.bytes_written
    return (
        Evidence(
            "counter",
            f"read {format_bytes(read.counted or 0)}, by the arguments "
            f"{format_bytes(read.modelled or 0)}; written {format_bytes(written.counted or 0)}, "
            f"by the arguments {format_bytes(written.modelled or 0)}",
        ),
    )
