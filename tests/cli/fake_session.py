"""A session that answers a run request with hand-made runs; it imports no torch.

What it does for a strategy is set by ``KX_FAKE``: ``strategy=deed`` pairs, for example
``compile=abort``; at one point of a sweep alone, ``compile@2048=abort``. The deeds are those below,
and ``unable`` for one that the machine cannot run; without one the strategy succeeds.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from explorer.model.device import Abilities, DeviceAbility, StrategyAbility
from explorer.model.errors import ExplorerError, UsageError
from explorer.model.fusion import INDUCTOR, parse_plan
from explorer.model.legality import check
from explorer.model.messages import (
    Check,
    DoctorReport,
    DoctorRequest,
    GraphCaptured,
    GraphRequest,
    GroupingFound,
    GroupingRequest,
    Progress,
    RunFinished,
    RunRequest,
    Stage,
)
from explorer.model.run import Bytes, CompileCost, Run, StrategyInfo
from explorer.model.strategies import PLAN, parse_spec
from tests.fixtures_runs import CPU, CPU_GRAPH, CPU_VERSIONS, cpu_attention

if TYPE_CHECKING:
    from explorer.model.messages import Request
    from explorer.worker.server import Emit

SESSION = "tests.cli.fake_session:FakeSession"
_PROGRAM = f"""
import functools, sys
from explorer.cli import check, main, run
from explorer.worker.blocking import WorkerClient
for module in (check, run):
    module.WorkerClient = functools.partial(
        WorkerClient, server_arguments=("--session", {SESSION!r})
    )
sys.exit(main())
"""
INDUCTORS_PLAN = "qk|scale+mask+softmax+dropout|pv"
ABILITIES = Abilities(
    versions=CPU_VERSIONS,
    devices=(
        DeviceAbility(
            device=CPU,
            counters=False,
            counters_sentence="A CPU has no counter that we read.",
            strategies=(
                StrategyAbility(spec="eager", title="eager", available=True),
                StrategyAbility(
                    spec="cudagraph", title="g", available=False, reason="It needs a GPU."
                ),
            ),
        ),
    ),
    default_device="cpu",
)


class FakeSession:
    def abilities(self) -> Abilities:
        (cpu,) = ABILITIES.devices
        unable = tuple(
            StrategyAbility(spec=spec, title=spec, available=False, reason=f"{spec} lacks a tool.")
            for spec, deed in deeds().items()
            if deed == "unable"
        )
        return replace(ABILITIES, devices=(replace(cpu, strategies=(*cpu.strategies, *unable)),))

    def handle(self, request: Request, emit: Emit) -> None:
        if isinstance(request, DoctorRequest):
            checks = (
                Check(name="compiler", ok=True, sentence="g++ is there."),
                Check(name="counters", ok=False, sentence="There are none.", remedy="Use a GPU."),
            )
            emit(DoctorReport(abilities=ABILITIES, checks=checks))
            return
        if isinstance(request, GraphRequest):
            emit(
                GraphCaptured(graph=CPU_GRAPH, parameters={}, estimate_bytes=1, device="cpu"),
            )
            return
        if isinstance(request, GroupingRequest):
            act(deeds().get("grouping", ""))
            emit(
                GroupingFound(chain=request.chain, parameters={}, device="cpu", plan=INDUCTORS_PLAN)
            )
            return
        assert isinstance(request, RunRequest)
        if request.device not in ("auto", "cpu"):
            raise UsageError(f"There is no device {request.device!r}; there is cpu.")
        for spec in request.strategies:
            if deed_of(spec, request) == "unable":
                raise UsageError(f"{spec} lacks a tool.")
            strategy_of(spec)
        for place, spec in enumerate(request.strategies):
            emit(
                Progress(
                    stage=Stage.COMPILE,
                    sentence="generating kernels",
                    fraction=place / len(request.strategies),
                    strategy=spec,
                )
            )
            deed = deed_of(spec, request)
            act(deed)
            run = replace(
                cpu_attention(f"{spec} seed {request.seed}"),
                strategy=strategy_of(spec),
                seed=request.seed,
                error="It did not fit." if deed == "error" else None,
            )
            if request.swept is not None:
                run = point(run, request)
            if deed == "worse":
                run = worse(run)
            if deed == "nan":
                cost = CompileCost(first_call_s=math.nan)
                run = replace(run, compile=cost)
            emit(RunFinished(run=run))


def strategy_of(spec: str) -> StrategyInfo:
    """The strategy, a plan written out.

    Raises:
        UsageError: The plan is not legal.
    """
    strategy = parse_spec(spec)
    if strategy.name != PLAN:
        return strategy
    option = INDUCTORS_PLAN if strategy.option == INDUCTOR else strategy.option or ""
    plan = parse_plan(option, [op.name for op in CPU_GRAPH.ops], "attention")
    illegal = check(CPU_GRAPH, plan)
    if illegal is not None:
        raise UsageError(illegal.sentence)
    return replace(strategy, plan=plan.text)


def point(run: Run, request: RunRequest) -> Run:
    """The run as a point of a sweep: with what was set, and a note of how it was asked for."""
    parameters = {**run.chain.parameters, **request.parameters}
    return replace(
        run,
        chain=replace(run.chain, name=request.chain, parameters=parameters),
        swept=request.swept,
        label=f"{len(request.parameters)} set, timed {request.timing_s} s",
    )


def deed_of(spec: str, request: RunRequest) -> str:
    """What it does for a strategy, at the request's point of a sweep before anywhere."""
    value = request.parameters.get(request.swept or "")
    return deeds().get(f"{spec}@{value}") or deeds().get(spec, "")


def worse(run: Run) -> Run:
    """The run with twice the time and one and a half times the bytes written."""
    timing = run.timing
    assert timing is not None
    assert timing.cold is not None
    cold = timing.cold
    slower = replace(cold, median_us=2 * cold.median_us, q1_us=2 * cold.q1_us, q3_us=2 * cold.q3_us)
    launches = tuple(
        replace(launch, bytes_written=Bytes(modelled=(launch.bytes_written.modelled or 0) * 3 // 2))
        for launch in run.launches
    )
    return replace(run, timing=replace(timing, cold=slower), launches=launches)


def program(*arguments: str) -> list[str]:
    """A command that is the whole program, with this session as its worker's."""
    return [sys.executable, "-c", _PROGRAM, *arguments]


def deeds() -> dict[str, str]:
    return dict(pair.split("=") for pair in os.environ.get("KX_FAKE", "").split())


def act(deed: str) -> None:
    if deed == "abort":
        os.abort()
    elif deed == "raise":
        raise RuntimeError("inside")
    elif deed == "refuse":
        raise ExplorerError("It will not do.")
    elif deed == "hang":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        time.sleep(600)
