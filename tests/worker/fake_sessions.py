"""Sessions that misbehave, for the worker to survive; none imports torch.

What a request should do travels in its ``chain`` field: a name of ``DEEDS``.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.model.device import Abilities, Device, DeviceAbility, DeviceKind, Versions
from explorer.model.errors import ExplorerError, UsageError
from explorer.model.messages import Progress, RunRequest, Stage
from explorer.worker.protocol import RESTART_EXIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from explorer.model.messages import Request
    from explorer.worker.server import Channel, Emit

CPU = Device(
    id="cpu",
    name="a processor",
    kind=DeviceKind.CPU,
    memory_bytes=8_000_000_000,
    free_bytes=4_000_000_000,
    l2_bytes=32_000_000,
    sm_count=2,
)


def say(emit: Emit, sentence: str) -> None:
    emit(Progress(stage=Stage.CAPTURE, sentence=sentence))


class FakeSession:
    """Does what the request's chain names."""

    def abilities(self) -> Abilities:
        return Abilities(
            versions=Versions(explorer="0", python=sys.version.split()[0], torch="none"),
            devices=(DeviceAbility(device=CPU, counters=False, counters_sentence="No counters."),),
            default_device="cpu",
            warnings=tuple(sorted(sys.modules)),
        )

    def handle(self, request: Request, emit: Emit) -> None:
        assert isinstance(request, RunRequest)
        DEEDS[request.chain](emit)


class Poisoned(FakeSession):
    """Answers well, and then wants a new process."""

    needs_restart = True


class NoAbilities(FakeSession):
    def abilities(self) -> Abilities:
        raise RuntimeError("no driver\nand a second line")


class LacksPackage(FakeSession):
    def __init__(self) -> None:
        raise ModuleNotFoundError("No module named 'left_out.part'", name="left_out.part")


class LacksRoom(FakeSession):
    def __init__(self) -> None:
        raise ImportError("libtorch_cpu.so: failed to map segment from shared object")


class PrintsWhileStarting(FakeSession):
    def __init__(self) -> None:
        sys.stdout.write("a banner on stdout\n")
        os.system("echo and one from a child")


def work(emit: Emit) -> None:
    say(emit, f"pid {os.getpid()}")


def print_everywhere(emit: Emit) -> None:
    sys.stdout.write('{"type": "RequestDone", "body": {}}\n')
    sys.stdout.flush()
    os.write(1, b"straight to the descriptor\n")
    subprocess.run(["sh", "-c", "echo from a child"], check=True)
    say(emit, "printed")


def read_stdin(emit: Emit) -> None:
    read = subprocess.run(["cat"], stdout=subprocess.PIPE, check=True).stdout
    say(emit, f"a child read {len(read)} bytes; stdin holds {len(sys.stdin.read())}")


def raise_error(emit: Emit) -> None:
    say(emit, "about to fail")
    raise KeyError("a key\nand a second line")


def refuse(emit: Emit) -> None:
    raise UsageError("There is no such thing.")


def fail(emit: Emit) -> None:
    raise ExplorerError("It did not work; try the other way.")


def exit_program(emit: Emit) -> None:
    sys.exit("goodbye")


def interrupt(emit: Emit) -> None:
    raise KeyboardInterrupt


def run_out_of_memory(emit: Emit) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), hard))
    try:
        bytearray(1 << 30)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def lose_context(emit: Emit) -> None:
    raise RuntimeError("CUDA error: device-side assert triggered\nmore")


def abort(emit: Emit) -> None:
    os.abort()


def kill(emit: Emit) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def terminate(_emit: Emit) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(600)


def leave(emit: Emit) -> None:
    sys.stderr.write("first words\nlast words\n")
    sys.stderr.flush()
    os._exit(7)


SLEEPER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); "


def compile_forever(emit: Emit) -> None:
    """Like a compile: a child with a child of its own, both deaf to SIGTERM, and a long wait."""
    code = (
        SLEEPER
        + "import subprocess, sys; "
        + f"subprocess.Popen([sys.executable, '-c', {SLEEPER + 'time.sleep(600)'!r}]); "
        + "time.sleep(600)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    child.stdout.readline()
    say(emit, f"compiling {child.pid}")
    time.sleep(600)


def leave_with_child(emit: Emit) -> None:
    """The child inherits the worker's descriptors as far as the worker lets it."""
    child = subprocess.Popen(
        [sys.executable, "-c", SLEEPER + "time.sleep(600)"], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    os._exit(7)


def fork_and_leave(_emit: Emit) -> None:
    """A fork keeps every descriptor, the protocol's among them, and holds the pipe open."""
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    os._exit(7)


def end_a_fork(emit: Emit) -> None:
    """As a pool of processes ends its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b".")
        time.sleep(600)
    os.read(reading, 1)
    os.kill(child, signal.SIGTERM)
    say(emit, f"ended by {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}")


def compile_in_a_session_of_its_own(emit: Emit) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SLEEPER + "time.sleep(600)"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    say(emit, f"compiling {child.pid}")
    time.sleep(600)


def give_up(_emit: Emit) -> None:
    os._exit(RESTART_EXIT)


def write_rubbish(emit: Emit) -> None:
    """On the protocol's own descriptor, in pieces, as no library of ours would."""
    channel: Channel = emit.__self__  # type: ignore[attr-defined] # it is the channel's method
    for piece in (b"\xff\xfe\x00\n", b'{"type": "Pro', b'gress"}\n', b"[" * 100_000, b"\n\n"):
        os.write(channel._outgoing, piece)
    say(emit, "after the rubbish")


def say_much(emit: Emit) -> None:
    say(emit, "x" * 3_000_000)


def talk_forever(emit: Emit) -> None:
    while True:
        say(emit, "x" * 1000)


DEEDS: dict[str, Callable[[Emit], None]] = {
    deed.__name__: deed
    for deed in (
        work, print_everywhere, read_stdin, raise_error, refuse, fail, exit_program, interrupt,
        run_out_of_memory, lose_context, abort, kill, leave, compile_forever, leave_with_child,
        talk_forever, fork_and_leave, compile_in_a_session_of_its_own, give_up, write_rubbish,
        say_much, terminate, end_a_fork,
    )
}  # fmt: skip
