"""Differences between planned, modelled and counted bytes, each with its cause."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from explorer.model.code_evidence import loaded_twice, stored_and_loaded
from explorer.model.contrast import contrasts, why_not_fastest
from explorer.model.finding import Finding, FindingKind, Step
from explorer.model.findings import findings, group_findings, main_finding
from explorer.model.fusion import all_in_one
from explorer.model.opgraph import Op, OpGraph, OpKind
from explorer.model.outcome import outcomes, promised
from explorer.model.run import Access, Bytes, FusionGroup, Launch, Run, StrategyInfo
from explorer.model.tensor import Tensor, TensorRole
from explorer.recording import load_recording
from tests.conftest import CHECKOUT
from tests.fixtures_runs import all_runs, compiled_attention, eager_attention, failed_run
from tests.model.graphs import graph_of

MB = 1_000_000
L2_BYTES = eager_attention().device.l2_bytes
BIG = 1_000 * MB
"""Far above anything that L2 could hold of it."""
BASE = eager_attention()
RECORDING = CHECKOUT / "assets" / "recordings" / "attention-h200.kx"

LOOPED = """
triton_meta={'signature': {'in_ptr0': '*bf16', 'out_ptr1': '*fp32', 'out_ptr2': '*bf16'}}
def kernel(in_ptr0, out_ptr1, out_ptr2):
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        tmp0 = tl.load(in_ptr0 + (r0 + 8*x0), r0_mask)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        tmp1 = tl.rand(seed, r0)
        tl.store(out_ptr1 + (r0 + 8*x0), tmp1, r0_mask)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        tmp2 = tl.load(out_ptr1 + (r0 + 8*x0), r0_mask)
        tmp3 = tl.load(in_ptr0 + (r0 + 8*x0), r0_mask)
        tl.store(out_ptr2 + (r0 + 8*x0), tmp3, r0_mask)
"""
ONE_LOOP = """
def kernel(in_ptr0, out_ptr0):
    tmp0 = tl.load(in_ptr0 + (x0), None)
    tl.store(out_ptr0 + (x0), tmp0, None)
"""


def tensor(
    name: str,
    shape: tuple[int, ...],
    dtype: str = "bf16",
    role: TensorRole = TensorRole.INPUT,
) -> Tensor:
    n_bytes = prod(shape) * (4 if dtype == "fp32" else 2)
    return Tensor(id=name, name=name, shape=shape, dtype=dtype, n_bytes=n_bytes, role=role)


def launch(
    ops: str,
    reads: Sequence[Tensor],
    writes: Sequence[Tensor],
    counted_mb: tuple[float, float] | None = None,
    *,
    asked_mb: float | None = None,
    code: str | None = None,
    spills: int | None = None,
    us: float = 100.0,
) -> Launch:
    """A launch whose model is its tensors and whose counters say what they are told to."""
    read, written = (sum(t.n_bytes for t in side) for side in (reads, writes))
    counted = (None, None) if counted_mb is None else tuple(round(x * MB) for x in counted_mb)
    return Launch(
        kernel=f"kernel_{ops.replace(' ', '_')}",
        title=ops,
        ops=tuple(ops.split()),
        accesses=(
            *(Access(tensor=t.id, bytes_read=t.n_bytes) for t in reads),
            *(Access(tensor=t.id, bytes_written=t.n_bytes) for t in writes),
        ),
        bytes_read=Bytes(modelled=read, counted=counted[0]),
        bytes_written=Bytes(modelled=written, counted=counted[1]),
        l2_bytes_requested=None if asked_mb is None else round(asked_mb * MB),
        duration_us=us,
        code=code,
        spills=spills,
    )


def run_of(launches: Sequence[Launch], tensors: Sequence[Tensor], **changes: object) -> Run:
    """A run of these launches; each carries its ops out as the graph has them."""
    by_id = {tensor.id: tensor for tensor in tensors}
    named = [t for t in tensors if t.role is not TensorRole.WORKSPACE]
    ops: list[Op] = []
    for each in launches:
        reads = tuple(a.tensor for a in each.accesses if a.bytes_read)
        writes = tuple(
            a.tensor
            for a in each.accesses
            if a.bytes_written and by_id[a.tensor].role is not TensorRole.WORKSPACE
        )
        for name in each.ops:
            kind = OpKind.REDUCTION if name == "softmax" else OpKind.ELEMENTWISE
            # Only the first op reads and only the last writes: what is between stays on chip.
            ops.append(
                Op(
                    name=name,
                    aten=f"aten.{name}",
                    kind=kind,
                    reads=reads if name == each.ops[0] else (),
                    writes=writes if name == each.ops[-1] else (),
                    flops=1,
                )
            )
    graph = OpGraph(ops=tuple(ops), tensors=tuple(named))
    made = replace(BASE, graph=graph, tensors=tuple(tensors), launches=tuple(launches))
    return replace(made, timing=None, counters=None, code={}, **changes)  # type: ignore[arg-type] # any field


def only(run: Run) -> Finding:
    found = findings(run)
    assert len(found) == 1, [finding.sentence for finding in found]
    return found[0]


X = tensor("x", (500 * MB,))
Y = tensor("y", (500 * MB,), role=TensorRole.OUTPUT)


@pytest.mark.parametrize("counted", [(1_000, 1_000), (1_049, 1_000), (951, 1_000), (1_000, 1_049)])
def test_within_five_percent_there_is_nothing_to_find(counted: tuple[float, float]) -> None:
    assert findings(run_of([launch("scale", [X], [Y], counted)], [X, Y])) == ()


def test_what_no_cause_accounts_for_is_unexplained_and_says_how_much() -> None:
    found = only(run_of([launch("scale", [X], [Y], (1_300, 1_000))], [X, Y]))
    assert found.kind is FindingKind.UNEXPLAINED
    assert found.step is Step.MODEL_TO_COUNT
    assert (found.launch, found.n_bytes) == (0, 300 * MB)
    assert found.sentence == (
        "scale reads 300 MB more than its arguments hold, cause not known."
    )  # fmt: skip


def test_an_unexplained_read_that_was_asked_of_l2_says_so() -> None:
    run = run_of([launch("scale", [X], [Y], (1_300, 1_000), asked_mb=2_400)], [X, Y])
    assert "asked L2 for 2.40 GB, so some of its tensors are fetched" in only(run).sentence


def masked(shape: tuple[int, ...], scores: tuple[int, ...], read_mb: float) -> Run:
    """Scores plus a mask; the scores' bytes are read and written as they should be."""
    mask, x = tensor("mask", shape), tensor("scores", scores)
    y = tensor("masked", scores, role=TensorRole.OUTPUT)
    read_mb += x.n_bytes / MB
    return run_of([launch("mask", [x, mask], [y], (read_mb, x.n_bytes / MB))], [mask, x, y])


@pytest.mark.parametrize(
    ("shape", "scores", "repeats"),
    [
        ((4096, 4096), (2, 16, 4096, 4096), "32 heads"),
        ((2, 1, 4096, 4096), (2, 16, 4096, 4096), "16 repeats"),
        ((4096, 4096), (32, 4096, 4096), "32 repeats"),
    ],
)
def test_a_broadcast_operand_read_once_a_repeat(
    shape: tuple[int, ...], scores: tuple[int, ...], repeats: str
) -> None:
    once = 2 * prod(shape) / MB
    count = prod(scores) // prod(shape)
    found = only(masked(shape, scores, read_mb=count * once))
    assert found.kind is FindingKind.REREAD
    assert found.n_bytes == (count - 1) * 2 * prod(shape)
    assert f"once for each of {repeats} instead of once" in found.sentence


def test_a_broadcast_operand_that_l2_keeps_is_no_cause() -> None:
    # 8 kB, asked for again after 24 kB: the counters cannot have seen it 131,072 times.
    run = masked((4096,), (32, 4096, 4096), read_mb=1_073)
    assert only(run).kind is FindingKind.UNEXPLAINED


def test_a_sum_that_does_not_fit_is_not_claimed() -> None:
    # 31 more reads of the mask would be 1,040 MB; 500 MB are not explained by them.
    run = masked((4096, 4096), (2, 16, 4096, 4096), read_mb=533)
    assert only(run).kind is FindingKind.UNEXPLAINED


def test_a_reduction_may_read_its_input_twice_and_an_elementwise_op_may_not() -> None:
    twice = only(run_of([launch("softmax", [X], [Y], (2_000, 1_000))], [X, Y]))
    assert twice.kind is FindingKind.SECOND_PASS
    assert "softmax goes through x twice: 1.00 GB more" in twice.sentence
    again = only(run_of([launch("scale", [X], [Y], (2_000, 1_000))], [X, Y]))
    assert again.kind is FindingKind.UNEXPLAINED


def test_code_without_a_second_load_rules_a_second_pass_out() -> None:
    one = launch("softmax", [X], [Y], (2_000, 1_000), code="one")
    two = replace(one, code="two")
    codes = {"one": ONE_LOOP, "two": LOOPED}
    single = only(replace(run_of([one], [X, Y]), code=codes))
    assert single.kind is FindingKind.UNEXPLAINED
    double = only(replace(run_of([two], [X, Y]), code=codes))
    assert double.kind is FindingKind.SECOND_PASS
    assert [e.text for e in double.evidence if e.is_code] == [
        "tmp0 = tl.load(in_ptr0 + (r0 + 8*x0), r0_mask)",
        "tmp3 = tl.load(in_ptr0 + (r0 + 8*x0), r0_mask)",
    ]


def test_equal_tensors_cannot_be_told_apart_and_both_are_named() -> None:
    other = replace(X, id="z", name="z")
    run = run_of([launch("softmax", [X, other], [Y], (3_000, 1_000))], [X, other, Y])
    assert "goes through x or z twice: 1.00 GB more" in only(run).sentence


@pytest.mark.parametrize("counted", [(1_300, 1_000), (1_000, 1_300)])
def test_spilled_registers_are_named(counted: tuple[float, float]) -> None:
    found = only(run_of([launch("scale", [X], [Y], counted, spills=12)], [X, Y]))
    assert found.kind is FindingKind.SPILLED
    assert "spills 12 registers a thread" in found.sentence


SMALL_X = tensor("x", (10 * MB,))
SMALL_Y = tensor("y", (10 * MB,), role=TensorRole.OUTPUT)
SMALL = [SMALL_X, SMALL_Y]


def test_reads_below_the_model_are_served_by_l2_only_if_it_was_asked_for_them() -> None:
    served = launch("scale", [SMALL_X], [SMALL_Y], (4, 20), asked_mb=40)
    found = only(run_of([served], SMALL))
    assert (found.kind, found.n_bytes) == (FindingKind.FROM_L2, -16 * MB)
    assert "finds 16.0 MB of what it reads in L2" in found.sentence
    unasked = replace(served, l2_bytes_requested=24 * MB)
    assert only(run_of([unasked], SMALL)).kind is FindingKind.UNEXPLAINED


def test_l2_cannot_spare_more_than_it_holds() -> None:
    missing = L2_BYTES / MB + 200
    run = run_of([launch("scale", [X], [Y], (1_000 - missing, 1_000), asked_mb=2_000)], [X, Y])
    assert only(run).kind is FindingKind.UNEXPLAINED


def test_writes_left_in_l2_and_those_that_arrive_later() -> None:
    middle = tensor("m", (10 * MB,), role=TensorRole.INTERMEDIATE)
    first = launch("scale", [SMALL_X], [middle], (20, 2))
    second = launch("gelu", [middle], [SMALL_Y], (20, 36))
    left, late = findings(run_of([first, second], [*SMALL, middle]))
    assert (left.kind, left.launch, left.n_bytes) == (FindingKind.LATE_WRITE, 0, -18 * MB)
    assert "leaves 18.0 MB of what it writes in L2" in left.sentence
    assert (late.kind, late.launch, late.n_bytes) == (FindingKind.LATE_WRITE, 1, 16 * MB)
    assert "16.0 MB of earlier launches' data" in late.sentence
    alone = only(run_of([replace(second, ops=("gelu",))], [*SMALL, middle]))
    assert alone.kind is FindingKind.UNEXPLAINED


def test_helpers_that_move_much_are_told_once() -> None:
    copy = replace(launch("", [X], [Y], (1_000, 1_000)), title="copy", ops=(), is_helper=True)
    run = run_of([copy, copy, launch("scale", [X], [Y], (1_000, 1_000))], [X, Y])
    found = only(run)
    assert (found.kind, found.n_bytes) == (FindingKind.HELPER, 4_000 * MB)
    assert found.sentence == "2 launches of copy move 4.00 GB that the chain does not ask for."


RANDOM = tensor("random numbers", (500 * MB,), "fp32", TensorRole.WORKSPACE)


def fused(counted: tuple[float, float] | None, planned: tuple[int, int] = (BIG, BIG)) -> Run:
    """A plan's one group, made into one kernel that also stores its random numbers."""
    one = launch("softmax dropout", [X], [Y, RANDOM], counted, code="k")
    group = FusionGroup(
        ops=("softmax", "dropout"), bytes_read=planned[0], bytes_written=planned[1], launches=(0,)
    )
    return replace(run_of([one], [X, Y, RANDOM], groups=(group,)), code={"k": LOOPED})


def test_a_buffer_that_the_chain_does_not_ask_for() -> None:
    found = only(fused((1_000, 3_000)))
    assert (found.kind, found.step) == (FindingKind.EXTRA_BUFFER, Step.PLAN_TO_MODEL)
    assert found.n_bytes == 2_000 * MB
    assert found.short == "writes 2.00 GB of random numbers that the chain does not ask for"
    assert "4 bytes an element, where y takes 2" in found.sentence
    assert "draws them in a loop of their own, stores them and loads them again" in found.sentence
    assert "come back from a cache" in found.sentence
    assert [e.text for e in found.evidence if e.is_code] == [
        "tmp1 = tl.rand(seed, r0)",
        "tl.store(out_ptr1 + (r0 + 8*x0), tmp1, r0_mask)",
        "tmp2 = tl.load(out_ptr1 + (r0 + 8*x0), r0_mask)",
    ]


def test_a_buffer_that_comes_back_from_memory_is_told_apart_from_one_that_does_not() -> None:
    extra, back = findings(fused((3_000, 3_000)))
    assert "come back from memory" in extra.sentence
    assert back.kind is FindingKind.SECOND_PASS
    assert "reads back the random numbers that it stored: 2.00 GB more" in back.sentence


def test_without_counters_nothing_is_said_of_where_it_comes_back_from() -> None:
    found = only(fused(None))
    assert found.kind is FindingKind.EXTRA_BUFFER
    assert "come back" not in found.sentence


def test_what_the_plan_did_not_promise_and_no_buffer_explains() -> None:
    extra, rest = findings(fused(None, planned=(BIG, BIG // 2)))
    assert extra.kind is FindingKind.EXTRA_BUFFER
    assert (rest.kind, rest.step) == (FindingKind.UNEXPLAINED, Step.PLAN_TO_MODEL)
    assert rest.n_bytes == 500 * MB


def split_group() -> Run:
    """A group planned as one kernel that became two, with a tensor between them."""
    middle = tensor("scaled", (500 * MB,), role=TensorRole.INTERMEDIATE)
    first, second = launch("scale", [X], [middle]), launch("softmax", [middle, X], [Y])
    group = FusionGroup(
        ops=("scale", "softmax"), bytes_read=BIG, bytes_written=BIG, launches=(0, 1)
    )
    return run_of([first, second], [X, Y, middle], groups=(group,))


def test_a_group_that_became_two_kernels_passes_its_tensor_through_memory() -> None:
    found = only(split_group())
    assert (found.kind, found.launch) == (FindingKind.SPLIT_GROUP, None)
    # Written, read back, and x read by both: 1 GB each.
    assert found.n_bytes == 3_000 * MB
    assert found.sentence == (
        "scale + softmax becomes 2 kernels, which pass scaled on through memory and each read x: "
        "3.00 GB more than in one."
    )
    (outcome,) = outcomes(split_group())
    assert group_findings(findings(split_group()), outcome) == (found,)


def test_what_others_need_too_had_to_be_written_anyway() -> None:
    run = split_group()
    middle = run.tensors[2]
    later = launch("pv", [middle], [Y])
    alone = FusionGroup(ops=("pv",), bytes_read=BIG, bytes_written=BIG, launches=(2,))
    groups = (replace(run.groups[0], bytes_written=2 * BIG), alone)
    run = replace(run, launches=(*run.launches, later), groups=groups)
    assert only(run).n_bytes == 2_000 * MB


def test_the_main_finding_has_a_cause_if_any_has_one() -> None:
    run = fused((1_000, 3_000))
    unknown = launch("scale", [X], [Y], (9_000, 1_000))
    run = replace(run, launches=(*run.launches, unknown))
    found = main_finding(run)
    assert found is not None
    assert found.kind is FindingKind.EXTRA_BUFFER
    assert main_finding(run_of([launch("scale", [X], [Y], (1_000, 1_000))], [X, Y])) is None


def test_outcomes_of_a_plan_are_its_groups_and_of_others_what_launches_show() -> None:
    (of_plan,) = outcomes(fused((1_000, 3_000)))
    assert (of_plan.planned, of_plan.modelled) == ((BIG, BIG), (BIG, 3 * BIG))
    assert (of_plan.counted, of_plan.kernels, of_plan.time_us) == ((BIG, 3 * BIG), 1, 100.0)
    shown = outcomes(compiled_attention())
    fused_ops = ("scale", "mask", "softmax", "dropout")
    assert [each.ops for each in shown] == [("qk",), fused_ops, ("pv",), ()]
    assert shown[-1].kernels == 0


def test_a_promise_has_planned_bytes_and_nothing_else() -> None:
    graph = graph_of([("a", "x", "y"), ("b", "y", "z")], outputs="z")
    (both,) = promised(graph, all_in_one(["a", "b"]))
    assert (both.planned, both.modelled, both.counted) == ((100, 100), None, None)
    assert (both.launches, both.kernels, both.time_us) == ((), 0, None)


def test_code_pairs_need_two_loops() -> None:
    (stored,) = stored_and_loaded(LOOPED)
    assert (stored.pointer, stored.dtype) == ("out_ptr1", "fp32")
    assert stored.drawn is not None
    assert (stored.drawn.number, stored.first.number, stored.second.number) == (7, 8, 10)
    assert [pair.pointer for pair in loaded_twice(LOOPED)] == ["in_ptr0"]
    assert stored_and_loaded(ONE_LOOP) == loaded_twice(ONE_LOOP) == ()
    assert stored_and_loaded("") == ()


@pytest.mark.parametrize("run", [*all_runs(), failed_run()], ids=lambda run: run.id)
def test_every_run_can_be_asked(run: Run) -> None:
    for found in findings(run):
        assert found.n_bytes != 0
        assert found.sentence.endswith(".")
        assert found.launch is None or found.launch < len(run.launches)


@pytest.fixture(scope="module")
def recorded() -> dict[str, Run]:
    return {run.strategy.spec: run for run in load_recording(Path(RECORDING))}


def test_the_recorded_mask_is_read_once_a_head(recorded: dict[str, Run]) -> None:
    (found,) = [f for f in findings(recorded["eager"]) if f.kind is FindingKind.REREAD]
    assert found.ops == ("mask",)
    assert found.n_bytes == 31 * 33_554_432
    counted = recorded["eager"].launches[found.launch or 0].bytes_read
    assert counted.counted is not None
    assert counted.modelled is not None
    assert found.n_bytes == pytest.approx(counted.counted - counted.modelled, rel=1e-3)


def test_the_recorded_fused_kernel_writes_its_random_numbers(recorded: dict[str, Run]) -> None:
    found = main_finding(recorded["compile"])
    assert found is not None
    assert found.kind is FindingKind.EXTRA_BUFFER
    assert found.n_bytes == 2_147_483_648
    assert "come back from a cache" in found.sentence
    assert [e.what for e in found.evidence if e.is_code] == [
        "generated code, line 65",
        "generated code, line 66",
        "generated code, line 73",
    ]


def test_every_recorded_launch_agrees_within_five_percent_or_says_why(
    recorded: dict[str, Run],
) -> None:
    for run in recorded.values():
        told = {f.launch for f in findings(run) if f.step is Step.MODEL_TO_COUNT}
        for i, each in enumerate(run.launches):
            pairs = [each.bytes_read, each.bytes_written]
            if each.is_helper or any(b.counted is None or b.modelled is None for b in pairs):
                continue
            whole = sum(b.counted or 0 for b in pairs)
            off = max(abs((b.counted or 0) - (b.modelled or 0)) for b in pairs)
            assert off <= 0.05 * whole or i in told


def sides() -> tuple[Run, Run]:
    """One kernel against two for the same ops, which move as much and take less."""
    middle = tensor("probs", (500 * MB,), role=TensorRole.INTERMEDIATE)
    one = fused((1_000, 3_000))
    two = [
        launch("softmax", [X], [middle], (1_000, 1_000), us=900.0),
        launch("dropout", [middle], [Y], (1_000, 1_000), us=1_600.0),
    ]
    slow = replace(one.launches[0], duration_us=2_800.0)
    strategy = StrategyInfo(name="plan")
    return (
        replace(one, launches=(slow,), strategy=strategy),
        run_of(two, [X, Y, middle], strategy=strategy),
    )


def test_a_contrast_names_times_bytes_and_what_the_saved_round_trip_went_into() -> None:
    one, two = sides()
    (found,) = contrasts(one, two)
    assert found.ops == ("softmax", "dropout")
    assert (found.extra_us, found.faster.plan) == (300.0, "softmax|dropout")
    assert why_not_fastest(one, two) == (
        "softmax + dropout take 2.80 ms in 1 kernel and 2.50 ms in 2 kernels (softmax|dropout). "
        "Both move as much, 4.00 GB counted, since softmax + dropout writes 2.00 GB of random "
        "numbers that the chain does not ask for. At the measured ceiling these bytes take "
        f"{4e9 / one.device.ceilings.bytes_per_s(1, 3) * 1e3:.2f} ms, "  # type: ignore[union-attr] # has ceilings
        f"{4e9 / one.device.ceilings.bytes_per_s(1, 3) / 2.8e-3 * 100:.0f} % of the time: "  # type: ignore[union-attr] # alike
        "memory alone does not set the pace."
    )
    assert why_not_fastest(two, one) == ""


def test_runs_without_durations_are_not_contrasted() -> None:
    one, two = sides()
    untimed = replace(one, launches=(replace(one.launches[0], duration_us=None),))
    assert contrasts(untimed, two) == ()
    assert why_not_fastest(untimed, two) == ""
