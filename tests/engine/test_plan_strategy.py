"""Fusion plans that run: right results, groups and bytes in the run, wrong plans refused."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
import torch

from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.measure.estimate import plan_peak_bytes
from explorer.engine.measure.memory import measure_peak
from explorer.engine.prepared import Prepared
from explorer.engine.session import Session
from explorer.engine.strategies import find_strategy
from explorer.model.errors import UsageError
from explorer.model.fusion import FusionPlan, all_in_one, each_alone, fusable_links
from explorer.model.legality import check
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.planned import planned_bytes
from explorer.model.run import Run, Scalar
from explorer.model.strategies import plan_spec
from tests.engine.graphs import (
    ALL_CHAINS,
    CPU,
    QUICK_CHAINS,
    SMALL,
    chosen,
    ops_of,
    random_plans,
    ready,
)

DRAWN_PLANS = 400
"""Random ones a chain, legal or not."""
ATTENTION: dict[str, Scalar] = {"heads": 2, "seq_len": 64, "head_dim": 16}


def legal_plans(chain: str, count: int) -> list[FusionPlan]:
    """One op a kernel, all in one, then random ones."""
    ops, graph = ops_of(chain), chosen(chain).captured.graph
    legal = (plan for plan in random_plans(chain, DRAWN_PLANS) if check(graph, plan) is None)
    return list(dict.fromkeys((each_alone(ops), all_in_one(ops), *legal)))[:count]


def results(prepared: Prepared, plan: FusionPlan) -> list[torch.Tensor]:
    """What a plan leaves behind after one call on fresh inputs."""
    with closing(find_strategy(plan_spec(plan.text)).build(prepared)) as built:
        assert built.plan == plan.text
        assert sorted(group.ops for group in built.groups) == sorted(plan.groups)
        prepared.restore_inputs()
        torch.manual_seed(0)
        return [tensor.clone() for tensor in prepared.results(built.call())]


def agree(chain: str, plans: Sequence[FusionPlan]) -> None:
    """Check that plans leave behind what the chain does as it is written.

    Inductor draws other random numbers than eager, but the same ones under every plan.
    """
    prepared = ready(chain)
    expected = results(prepared, plans[0])
    if "dropout" not in ops_of(chain):
        prepared.restore_inputs()
        written = prepared.results(prepared.function(*prepared.inputs.values()))
        torch.testing.assert_close(expected, [tensor.clone() for tensor in written])
    for plan in plans[1:]:
        torch.testing.assert_close(results(prepared, plan), expected, msg=plan.text)


@pytest.mark.parametrize("chain", QUICK_CHAINS)
def test_plans_compute_the_chain(chain: str) -> None:
    agree(chain, legal_plans(chain, 6))


@pytest.mark.slow
@pytest.mark.parametrize("chain", QUICK_CHAINS)
def test_every_plan_that_was_drawn_computes_the_chain(chain: str) -> None:
    agree(chain, legal_plans(chain, DRAWN_PLANS))


@pytest.mark.slow
# What is rounded to fp8 may be so to either side; that chain is judged as runs are.
@pytest.mark.parametrize("chain", sorted({*ALL_CHAINS} - {*QUICK_CHAINS, "rmsnorm-fp8"}))
def test_some_plans_compute_the_other_chains(chain: str) -> None:
    agree(chain, legal_plans(chain, 6))


@pytest.mark.parametrize(
    ("chain", "text"), [("attention", "each"), ("attention-scores", "softmax+dropout")]
)
def test_random_numbers_follow_the_seed_and_can_be_eagers_own(chain: str, text: str) -> None:
    prepared = ready(chain)
    inputs = tuple(prepared.inputs.values())

    def call(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        [result] = prepared.results(built.call())
        return result

    with closing(find_strategy(plan_spec(text)).build(prepared)) as built:
        first = call(1)
        assert torch.equal(call(1), first)
        assert not torch.equal(call(2), first)
    from torch._inductor import config

    with (
        config.patch(fallback_random=True),
        closing(find_strategy(plan_spec(text)).build(prepared)) as built,
    ):
        torch.manual_seed(1)
        [eager] = prepared.results(prepared.function(*inputs))
        torch.testing.assert_close(call(1), eager)


@pytest.mark.parametrize(
    ("chain", "settings", "spec", "sentence"),
    [
        ("attention", {}, "plan:scale+maks", "attention has no op 'maks'; its ops are qk, scale,"),
        ("attention", {}, "plan:scale+|mask", "The plan 'scale+|mask' lacks the name of an op"),
        ("attention", {}, "plan:scale|scale", "The plan 'scale|scale' names 'scale' twice"),
        (
            "attention",
            {"dropout": 0},
            "plan:softmax+dropout",
            "attention has no op 'dropout' with dropout=0.0; its ops are qk, scale, mask, softmax,",
        ),
        (
            "elementwise",
            {"k": 2},
            "plan:mul3+add4",
            "elementwise has no op 'mul3' with k=2; its ops are mul1, add2.",
        ),
        (
            "attention",
            {},
            "plan:scale+softmax",
            "The plan scale+softmax cannot run: scale and softmax cannot share a kernel without "
            "mask in between",
        ),
        (
            "adam",
            {},
            "plan:decay+root",
            "The plan decay+root cannot run: decay and root cannot share a kernel without variance",
        ),
        ("attention", {}, "plan:triton", "plan:triton is the grouping of a hand-written kernel"),
        ("attention", {}, "plan:*", "plan:* stands for many plans"),
        ("attention", {}, "plan:", "The strategy 'plan:' lacks its plan"),
    ],
)
def test_a_wrong_plan_is_refused_before_anything_is_measured(
    chain: str, settings: dict[str, Scalar], spec: str, sentence: str, tmp_path: Path
) -> None:
    got: list[Reply] = []
    request = RunRequest(
        chain=chain,
        parameters={**SMALL.get(chain, {}), **settings},
        strategies=("eager", spec),
        measure_ceilings=False,
    )
    with pytest.raises(UsageError) as caught:
        Session(CeilingsStore(tmp_path / "ceilings.json")).handle(request, got.append)
    assert str(caught.value).startswith(sentence)
    assert not any(isinstance(reply, RunFinished) for reply in got)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Attention under some plans, by what is behind the colon."""
    engine = Session(CeilingsStore(tmp_path_factory.mktemp("cache") / "ceilings.json"))
    plans = ("each", "scale+mask|softmax+dropout", "inductor", "scale+mask")
    got: list[Reply] = []
    request = RunRequest(
        chain="attention",
        parameters=ATTENTION,
        strategies=tuple(plan_spec(plan) for plan in plans),
        timing_s=0.01,
        measure_ceilings=False,
    )
    engine.handle(request, got.append)
    runs = [reply.run for reply in got if isinstance(reply, RunFinished)]
    return dict(zip(plans, runs, strict=True))


def test_a_run_says_which_launches_carry_out_which_group(measured: dict[str, Run]) -> None:
    run = measured["scale+mask|softmax+dropout"]
    assert run.error is None
    assert run.strategy.plan == "qk|scale+mask|softmax+dropout|pv"
    assert run.strategy.option == "scale+mask|softmax+dropout"
    assert [group.ops for group in run.groups] == [
        ("qk",), ("scale", "mask"), ("softmax", "dropout"), ("pv",),
    ]  # fmt: skip
    carried = [index for group in run.groups for index in group.launches]
    assert carried == list(range(len(run.launches)))
    for group in run.groups:
        launches = [run.launches[i] for i in group.launches if not run.launches[i].is_helper]
        assert [launch.ops for launch in launches] == [group.ops]
        assert launches[0].bytes_read.planned == group.bytes_read
        assert launches[0].bytes_written.planned == group.bytes_written
    # The seed of dropout is a helper, of the group that needs it and of no op.
    helpers = {i for i, launch in enumerate(run.launches) if launch.is_helper}
    assert helpers == set(run.groups[2].launches) - {run.groups[2].launches[-1]}
    assert run.accuracy is not None
    assert run.accuracy.passed


def test_tensors_between_groups_are_the_graphs_own(measured: dict[str, Run]) -> None:
    run = measured["scale+mask|softmax+dropout"]
    touched = {a.tensor for launch in run.launches for a in launch.accesses}
    assert {"q", "k", "scores", "masked", "dropped", "v", "out"} <= touched
    assert not {"scaled", "probs"} & touched
    on_chip = [launch.stays_on_chip for launch in run.launches if not launch.is_helper]
    assert on_chip == [(), ("scaled",), ("probs",), ()]


def test_pieces_that_were_there_are_said_to_be(measured: dict[str, Run]) -> None:
    first, second = measured["scale+mask|softmax+dropout"], measured["scale+mask"]
    assert {group.ops: group.from_cache for group in second.groups}["scale", "mask"]
    for run in (first, second):
        assert run.compile is not None
        times = [group.compile_s for group in run.groups]
        assert all(time is not None for time in times)
        assert run.compile.first_call_s >= sum(time or 0 for time in times)


def test_groups_that_are_alike_keep_their_own_ops(tmp_path: Path) -> None:
    got: list[Reply] = []
    request = RunRequest(
        chain="elementwise",
        parameters={"elements": 64, "k": 8},
        strategies=("plan:mul1+add2+mul3+add4|mul5+add6+mul7+add8", "plan:mul1+add2|mul5+add6"),
        timing_s=0.01,
        measure_ceilings=False,
    )
    Session(CeilingsStore(tmp_path / "ceilings.json")).handle(request, got.append)
    for run in [reply.run for reply in got if isinstance(reply, RunFinished)]:
        assert run.error is None
        assert [launch.ops for launch in run.launches] == [group.ops for group in run.groups]
        for launch in run.launches:
            assert launch.code is not None
            # Kernels of several groups have one name; each has its own constant.
            factor = "1.25" if launch.ops[0] in ("mul1", "mul5") else "0.8"
            if launch.ops[0].startswith("mul"):
                assert factor in run.code[launch.code]


def test_inductors_own_grouping_is_written_out(measured: dict[str, Run]) -> None:
    run = measured["inductor"]
    assert run.error is None
    assert run.strategy.option == "inductor"
    assert run.strategy.plan == "qk|scale+mask+softmax+dropout|pv"
    assert len(run.groups) == 3


@pytest.mark.parametrize(
    ("plan", "read", "written"),
    # m and g; v; v and g; v, root_v, corrected: one each; p, m and denominator. Then m, v, v,
    # root_v, corrected, denominator, p. In one kernel: p, g, m, v and p, m, v.
    [("each", 11, 7), ("all", 4, 3)],
)
def test_adam_writes_what_it_updates_in_place_and_once(
    plan: str, read: int, written: int, tmp_path: Path
) -> None:
    elements = 4096
    got: list[Reply] = []
    request = RunRequest(
        chain="adam",
        parameters={"elements": elements},
        strategies=(plan_spec(plan),),
        timing_s=0.01,
        measure_ceilings=False,
    )
    Session(CeilingsStore(tmp_path / "ceilings.json")).handle(request, got.append)
    [run] = [reply.run for reply in got if isinstance(reply, RunFinished)]
    assert run.error is None
    assert sum(launch.bytes_read.modelled or 0 for launch in run.launches) == read * elements * 4
    assert sum(launch.bytes_written.modelled or 0 for launch in run.launches) == (
        written * elements * 4
    )
    assert sum(group.bytes_written for group in run.groups) == written * elements * 4
    assert not any(launch.is_helper for launch in run.launches)
    assert run.accuracy is not None
    assert run.accuracy.passed


@pytest.mark.parametrize("plan", ["each", "all", "decay+variance|eps+update"])
def test_adam_takes_no_memory_beside_what_crosses_groups(plan: str) -> None:
    prepared = ready("adam")
    elements = prepared.inputs["p"].nbytes
    # At most two of root_v, corrected and denominator are there at once.
    most = 0 if plan == "all" else 2 * elements
    pointers = [tensor.data_ptr() for tensor in prepared.inputs.values()]
    with closing(find_strategy(plan_spec(plan)).build(prepared)) as built:
        assert measure_peak(built.call, device=CPU).peak_bytes == most
        assert built.call() is None
    assert [tensor.data_ptr() for tensor in prepared.inputs.values()] == pointers


@pytest.mark.parametrize("chain", ["attention", "residual-rmsnorm", "swiglu"])
def test_the_estimate_of_memory_holds_for_plans(chain: str) -> None:
    prepared = ready(chain)
    for plan in legal_plans(chain, 3):
        with closing(find_strategy(plan_spec(plan.text)).build(prepared)) as built:
            peak = measure_peak(built.call, device=CPU).peak_bytes
        assert 0 < peak <= plan_peak_bytes(prepared.graph, plan, on_cuda=False)


def test_fewer_groups_plan_fewer_bytes() -> None:
    for chain in ALL_CHAINS:
        graph = chosen(chain).captured.graph
        apart, together = each_alone(ops_of(chain)), all_in_one(ops_of(chain))
        saved = sum(planned_bytes(graph, apart)) - sum(planned_bytes(graph, together))
        # Where there are only matmuls, nothing can be saved.
        assert saved > 0 or not fusable_links(graph), chain
