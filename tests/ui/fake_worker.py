"""A worker without torch: speaks the protocol, and breaks in the way the chain's name says."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

from explorer.model.device import Abilities, DeviceAbility, StrategyAbility
from explorer.model.messages import (
    Check,
    DoctorReport,
    DoctorRequest,
    GraphCaptured,
    GraphRequest,
    GroupingFound,
    GroupingRequest,
    Progress,
    Ready,
    Reply,
    RequestDone,
    RequestFailed,
    RunFinished,
    RunRequest,
    Stage,
)
from explorer.model.strategies import is_plan, parse_spec
from explorer.worker.protocol import CANNOT_START_EXIT, RESTART_EXIT, decode_request, encode
from tests.fixtures_runs import CPU, CPU_GRAPH, CPU_VERSIONS, cpu_attention

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
GROUPING = "qk|scale+mask+softmax|dropout|pv"
"""What it says that Inductor would do."""
attempts: list[GraphRequest] = []
"""To capture what cannot be captured."""

ABILITIES = Abilities(
    versions=CPU_VERSIONS,
    default_device="cpu",
    devices=(
        DeviceAbility(
            device=CPU,
            counters=False,
            counters_sentence="Bytes are modelled: a CPU has no counter that we read.",
            strategies=(
                StrategyAbility(spec="eager", title="eager", available=True),
                StrategyAbility(spec="compile", title="torch.compile", available=True),
                StrategyAbility(
                    spec="cudagraph",
                    title="CUDA graph of eager",
                    available=False,
                    reason="CUDA graphs need a CUDA device.",
                ),
            ),
        ),
    ),
)


def emit(reply: Reply) -> None:
    sys.stdout.buffer.write(encode(reply))
    sys.stdout.buffer.flush()


def grandchild(*, ignores_term: bool) -> int:
    """Start a process like a stuck compiler; returns its id."""
    code = "import signal, time\n"
    if ignores_term:
        code += "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    code += "print('up', flush=True)\ntime.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process.pid


def misbehave(way: str) -> None:
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif way == "abort":
        os.abort()
    elif way == "exception":
        raise RuntimeError("the chain went wrong")
    elif way == "exit":
        sys.exit(0)
    elif way == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        emit(progress(f"grandchild {grandchild(ignores_term=True)}"))
        time.sleep(600)
    elif way == "orphan":
        emit(progress(f"grandchild {grandchild(ignores_term=False)}"))
        os._exit(1)
    elif way == "noise":
        sys.stdout.write("a library prints a line\n")
        sys.stdout.write("and one without an end")
        sys.stdout.flush()
    elif way == "binary":
        sys.stdout.buffer.write(b"\xff\xfe\x00 no text\n{}\n[1]\n")


def break_at(spec: str) -> None:
    """Die or hang at the strategy that the mode names: ``dies-at SPEC``, ``hangs-at SPEC``."""
    way, _, broken = MODE.partition(" ")
    if broken == spec:
        emit(progress(f"at {spec}"))
        if way == "dies-at":
            os.abort()
        time.sleep(600)


def progress(sentence: str) -> Progress:
    return Progress(stage=Stage.COMPILE, sentence=sentence, fraction=0.25, strategy="compile")


def answer(request: object) -> None:
    if isinstance(request, GraphRequest) and request.chain.endswith(":Broken"):
        attempts.append(request)
        sentence = "net.py, line 3: ZeroDivisionError: division by zero"
        emit(RequestFailed(sentence=f"{sentence}; attempt {len(attempts)}."))
    elif isinstance(request, GraphRequest):
        if request.chain.endswith(":Deadly"):
            os.abort()
        emit(
            GraphCaptured(
                graph=CPU_GRAPH,
                parameters=request.parameters,
                estimate_bytes=50_000_000,
                device=request.device,
            )
        )
    elif isinstance(request, GroupingRequest):
        misbehave(str(request.parameters.get("way", "")))
        emit(
            GroupingFound(
                chain=request.chain,
                parameters=request.parameters,
                device=request.device,
                plan=GROUPING,
            )
        )
    elif isinstance(request, RunRequest):
        emit(progress("compiling"))
        misbehave(str(request.parameters.get("way", request.chain)))
        if MODE == "no-room-at" and request.parameters.get("seq_len") == 1024:
            emit(RequestFailed(sentence="It needs 190 GB and 149 GB are free on cpu."))
            emit(RequestDone())
            return
        if request.chain == "refused":
            emit(RequestFailed(sentence="It does not fit; seq_len 512 does."))
        for place, spec in enumerate(request.strategies):
            break_at(spec)
            run = cpu_attention(f"{spec}-{time.time_ns()}-{place}")
            strategy = replace(run.strategy, name=spec, title=spec)
            if is_plan(spec):
                strategy = replace(parse_spec(spec), plan=parse_spec(spec).option)
            run = replace(run, strategy=strategy)
            if request.own is not None:
                chain = replace(run.chain, name=request.chain, own=request.own)
                run = replace(run, chain=chain)
            if request.swept is not None:
                chain = replace(run.chain, parameters=request.parameters)
                run = replace(run, chain=chain, swept=request.swept)
            emit(RunFinished(run=run))
    elif isinstance(request, DoctorRequest) and MODE == "doctor":
        checks = (
            Check(name="torch", ok=True, sentence="torch 9."),
            Check(
                name="NVML", ok=False, sentence="It is silent.", lost="clocks.", remedy="Wake it."
            ),
        )
        emit(DoctorReport(abilities=ABILITIES, checks=checks))
    elif isinstance(request, DoctorRequest) and MODE == "ill":
        emit(RequestFailed(sentence="The doctor is ill."))
    elif isinstance(request, DoctorRequest):
        time.sleep(600)
    emit(RequestDone())


def main() -> None:
    mode = MODE
    if mode == "no-torch":
        emit(RequestFailed(sentence="There is no torch here; install torch."))
        sys.exit(CANNOT_START_EXIT)
    if mode == "dies":
        sys.exit("no worker today")
    if mode == "never-ready":
        time.sleep(600)
    emit(Ready(abilities=ABILITIES))
    for line in sys.stdin.buffer:
        request = decode_request(line)
        answer(request)
        if isinstance(request, RunRequest) and request.chain == "lost":
            sys.exit(RESTART_EXIT)


if __name__ == "__main__":
    main()
