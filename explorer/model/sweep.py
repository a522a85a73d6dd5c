"""A chain's plans set side by side: the time and the traffic of each, and the best of both.

Only like is compared with like: the same work on the same device, bytes of one pedigree, times
taken in one condition. Times whose quartile ranges overlap count as equal, as elsewhere.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

from explorer.model.comparison import (
    Condition,
    distrust,
    headline,
    is_comparable,
    ranges_overlap,
)
from explorer.model.errors import UsageError
from explorer.model.fusion import (
    INDUCTOR,
    MOST_SWEPT_LINKS,
    FusionPlan,
    fusable_links,
    parse_plan,
    plan_of_launches,
)
from explorer.model.opgraph import OpGraph
from explorer.model.run import Pedigree, Run, Samples
from explorer.model.strategies import is_plan_run, parse_spec, plan_text
from explorer.model.traffic import Traffic, peak_bytes, run_traffic

SAME_TRAFFIC_SHARE = 0.01
"""Traffic that differs by less counts as equal: counters vary by about that much."""

_PEDIGREES = (Pedigree.COUNTED, Pedigree.SAMPLED, Pedigree.MODELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """A run as a sweep sees it.

    Attributes:
        run: What was measured.
        plan: Its plan; of a run that is no plan's None.
        time: In the sweep's condition, None if it was not timed so.
        bytes_read: From memory, of the sweep's pedigree; None without it.
        bytes_written: To memory, alike.
        launches: Kernels, helpers left out.
        peak_bytes: Highest memory over the inputs, None if unknown.
        distrust: Why its time must not be used; empty if it may be.
    """

    run: Run
    plan: FusionPlan | None
    time: Samples | None
    bytes_read: int | None
    bytes_written: int | None
    launches: int
    peak_bytes: int | None
    distrust: str = ""

    @property
    def text(self) -> str:
        """The plan written out, or how the strategy is called."""
        return self.plan.text if self.plan else parse_spec(self.run.strategy.spec).title

    @property
    def traffic(self) -> int | None:
        """Bytes read and written together."""
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written

    @property
    def is_placed(self) -> bool:
        """Whether it has both a time and a traffic, trusted or not."""
        return self.time is not None and self.traffic is not None

    @property
    def usable(self) -> bool:
        """Whether it may be the best of something: placed, and its time may be used."""
        return self.is_placed and not self.distrust

    @property
    def median_us(self) -> float:
        """Its time, endless where it was not timed."""
        return self.time.median_us if self.time else math.inf


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The plans of one chain that ran, and what they are to be held against.

    What is best in it is found once, when first asked for; that is why it has no slots.

    Attributes:
        chain: Title of the chain.
        points: A plan each, the newest run of it; most kernels in the plan first.
        eager: The chain as written, if it ran.
        compiled: `torch.compile`, if it ran.
        inductor: Inductor's own grouping, None if no run shows it.
        pedigree: Of all bytes here, None if no one pedigree is known of every plan.
        condition: Of all times here, None if nothing was timed.
        front: The plans that no other beats, least traffic first.
        possible: How many plans a sweep of the chain runs; None where it takes none.
        done: How many of those ran, failed ones included.
    """

    chain: str
    points: tuple[SweepPoint, ...]
    eager: SweepPoint | None
    compiled: SweepPoint | None
    inductor: FusionPlan | None
    pedigree: Pedigree | None
    condition: Condition | None
    front: tuple[SweepPoint, ...]
    possible: int | None
    done: int

    @cached_property
    def usable(self) -> tuple[SweepPoint, ...]:
        """The points that may be the best of something."""
        return tuple(point for point in self.points if point.usable)

    @cached_property
    def fastest(self) -> SweepPoint | None:
        """The plan with the lowest median."""
        return min(self.usable, key=lambda point: point.median_us, default=None)

    @cached_property
    def leanest(self) -> SweepPoint | None:
        """The plan with the least traffic; of equals the fastest."""
        usable = self.usable
        least = min((point.traffic or 0 for point in usable), default=0)
        equals = [point for point in usable if not _is_more(point.traffic or 0, least)]
        return min(equals, key=lambda point: point.median_us, default=None)

    @cached_property
    def most_fused(self) -> SweepPoint | None:
        """The plan of fewest groups; None if several have as few."""
        usable = self.usable
        fewest = min((_n_groups(point) for point in usable), default=0)
        found = [point for point in usable if _n_groups(point) == fewest]
        return found[0] if len(found) == 1 else None

    @cached_property
    def inductor_point(self) -> SweepPoint | None:
        """The point of the plan that is Inductor's own choice."""
        if self.inductor is None:
            return None
        return next((point for point in self.points if point.plan == self.inductor), None)


def sweep_of(runs: Sequence[Run], anchor: Run | None = None) -> Sweep | None:
    """Set the plans among runs side by side.

    Args:
        runs: Oldest first; of several runs of one plan the newest counts.
        anchor: Whose work and device the sweep is about; the newest run of a plan if left out.

    Returns:
        None where no plan ran that did that work.
    """
    if anchor is None:
        anchor = next((run for run in reversed(runs) if is_plan_run(run)), None)
    if anchor is None:
        return None
    alike = [run for run in runs if is_comparable(anchor, run)]
    graph = next((run.graph for run in reversed(alike) if run.graph.ops), anchor.graph)
    by_plan: dict[FusionPlan, Run] = {}
    for run in alike:
        plan = plan_of_run(run, graph)
        # A plan that failed this time keeps the run that it has.
        if plan is not None and (run.launches or plan not in by_plan):
            by_plan[plan] = run
    if not by_plan:
        return None
    ordered = sorted(by_plan.items(), key=lambda item: -len(item[0].groups))
    traffics = {id(run): run_traffic(run) for run in by_plan.values() if run.launches}
    pedigree = _common_pedigree(list(traffics.values()))
    condition = _common_condition(tuple(by_plan.values()))
    eager, compiled = (_newest(alike, spec) for spec in ("eager", "compile"))
    points = tuple(
        _point(run, plan, pedigree, condition, traffics.get(id(run))) for plan, run in ordered
    )
    return Sweep(
        chain=anchor.chain.title or anchor.chain.name,
        points=points,
        eager=_point(eager, None, pedigree, condition) if eager else None,
        compiled=_point(compiled, None, pedigree, condition) if compiled else None,
        inductor=_inductor(alike, graph, compiled),
        pedigree=pedigree,
        condition=condition,
        front=pareto_front(points),
        possible=possible_plans(graph),
        done=sum(is_swept(plan, graph) for plan in by_plan),
    )


def possible_plans(graph: OpGraph) -> int | None:
    """How many plans a sweep runs: two a fusable link. None where there are none or too many."""
    links = len(fusable_links(graph))
    return 1 << links if 0 < links <= MOST_SWEPT_LINKS else None


def is_swept(plan: FusionPlan, graph: OpGraph) -> bool:
    """Whether a plan is one of those that a sweep runs: its groups are runs of fusable links."""
    links = set(fusable_links(graph))
    return all(pair in links for group in plan.groups for pair in pairwise(group))


def plan_of_run(run: Run, graph: OpGraph) -> FusionPlan | None:
    """The plan that a run carried out, or was to carry out; None if that cannot be told."""
    if not is_plan_run(run):
        return None
    return _plan_read(plan_text(run), tuple(op.name for op in graph.ops), run.chain.name)


@lru_cache(maxsize=1024)
def _plan_read(text: str, ops: tuple[str, ...], chain: str) -> FusionPlan | None:
    try:
        return parse_plan(text, ops, chain)
    except UsageError:
        # A preset whose grouping was never found out, because the run failed before.
        return None


def pareto_front(points: Sequence[SweepPoint]) -> tuple[SweepPoint, ...]:
    """The points that no other beats, least traffic first.

    A point beats another if it is faster and moves no more, or moves less and is no slower.
    Points whose time must not be used neither beat nor stand in the front.
    """
    able = sorted((p for p in points if p.usable), key=lambda p: (p.traffic or 0, p.median_us))
    traffics = [point.traffic or 0 for point in able]
    spans = [(point.time.q1_us, point.time.q3_us) for point in able if point.time]
    # Of all points up to a traffic: where the quickest range begins, and where one ends.
    begins = list(accumulate((q1 for q1, _ in spans), min))
    ends = list(accumulate((q3 for _, q3 in spans), min))
    front = []
    for point, traffic, (q1, q3) in zip(able, traffics, spans, strict=True):
        no_more = bisect_right(traffics, traffic * (1 + SAME_TRAFFIC_SHARE))
        less = bisect_left(traffics, traffic / (1 + SAME_TRAFFIC_SHARE))
        loses_time = ends[no_more - 1] < q1
        loses_bytes = less > 0 and begins[less - 1] <= q3
        if not loses_time and not loses_bytes:
            front.append(point)
    return tuple(front)


def as_fast(first: SweepPoint, second: SweepPoint) -> bool:
    """Whether two points' times are equal within noise; not if one has none."""
    return bool(first.time and second.time and ranges_overlap(first.time, second.time))


def rank_correlation(points: Sequence[SweepPoint]) -> float | None:
    """Spearman's rank correlation of time with traffic: 1 if more bytes always take longer.

    Returns:
        None for fewer than four points, or where one of the two is the same for all.
    """
    able = [point for point in points if point.usable]
    if len(able) < 4:
        return None
    times = _ranks([point.median_us for point in able])
    bytes_ = _ranks([float(point.traffic or 0) for point in able])
    middle = (len(able) + 1) / 2
    across = sum((t - middle) * (b - middle) for t, b in zip(times, bytes_, strict=True))
    spread = sum((t - middle) ** 2 for t in times) * sum((b - middle) ** 2 for b in bytes_)
    return across / spread**0.5 if spread > 0 else None


def _ranks(values: Sequence[float]) -> list[float]:
    """Rank of each value from 1; equal ones share the mean of their ranks."""
    order = sorted(values)
    return [(bisect_left(order, value) + bisect_right(order, value) + 1) / 2 for value in values]


def _is_more(first: int, second: int) -> bool:
    return first > second * (1 + SAME_TRAFFIC_SHARE)


def _n_groups(point: SweepPoint) -> int:
    return len(point.plan.groups) if point.plan else 0


def _newest(runs: Sequence[Run], spec: str) -> Run | None:
    fit = [run for run in runs if run.strategy.spec == spec and run.launches]
    return fit[-1] if fit else None


def _inductor(alike: Sequence[Run], graph: OpGraph, compiled: Run | None) -> FusionPlan | None:
    """What the launches of `torch.compile` show, else what a run of that preset found."""
    if compiled is not None:
        return plan_of_launches(graph, compiled.launches)
    asked = [r for r in alike if is_plan_run(r) and r.strategy.option == INDUCTOR]
    return next((plan for run in reversed(asked) if (plan := plan_of_run(run, graph))), None)


def _common_pedigree(traffics: Sequence[Traffic]) -> Pedigree | None:
    """The strongest pedigree that all have; bytes of two are not compared."""
    for pedigree in _PEDIGREES:
        if traffics and all(traffic.of(pedigree) is not None for traffic in traffics):
            return pedigree
    return None


def _common_condition(runs: Sequence[Run]) -> Condition | None:
    """The condition that the first timed run is judged by."""
    heads = (headline(run) for run in runs)
    return next((head.condition for head in heads if head is not None), None)


def _point(
    run: Run,
    plan: FusionPlan | None,
    pedigree: Pedigree | None,
    condition: Condition | None,
    traffic: Traffic | None = None,
) -> SweepPoint:
    head = headline(run)
    if traffic is None and run.launches:
        traffic = run_traffic(run)
    values = traffic.of(pedigree) if pedigree and traffic else None
    read, written = values or (None, None)
    return SweepPoint(
        run=run,
        plan=plan,
        time=head.samples if head is not None and head.condition is condition else None,
        bytes_read=read,
        bytes_written=written,
        launches=sum(not launch.is_helper for launch in run.launches),
        peak_bytes=peak_bytes(run),
        distrust=run.error or distrust(run),
    )
