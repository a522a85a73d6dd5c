"""How a worker is started: which Python, which environment, and whose packages it sees."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import venv
from importlib import util
from pathlib import Path

import pytest

from explorer.model.errors import UsageError
from explorer.worker import bootstrap, client, protocol
from explorer.worker.blocking import WorkerClient, WorkerEndedError
from tests.conftest import CHECKOUT


def make_fake_environment(folder: Path, *, with_torch: bool) -> Path:
    """A folder that looks like a virtual environment; its Python is ours."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    if with_torch:
        torch = folder / "lib" / "python3.11" / "site-packages" / "torch"
        torch.mkdir(parents=True)
        (torch / "__init__.py").touch()
    return python


def test_the_active_environment_is_taken_if_it_has_torch(tmp_path: Path) -> None:
    python = make_fake_environment(tmp_path / "with", with_torch=True)
    make_fake_environment(tmp_path / "without", with_torch=False)
    assert client.default_python({"VIRTUAL_ENV": str(tmp_path / "with")}) == python
    assert client.default_python({"VIRTUAL_ENV": str(tmp_path / "without")}) == Path(sys.executable)
    assert client.default_python({"VIRTUAL_ENV": str(tmp_path / "gone")}) == Path(sys.executable)
    assert client.default_python({}) == Path(sys.executable)


def test_a_python_can_be_named_by_path_by_folder_or_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = make_fake_environment(tmp_path / "env", with_torch=False)
    # The link itself, not what it points to: its place makes it an environment's Python.
    assert client.find_python(python) == python
    assert client.find_python(tmp_path / "env") == python
    monkeypatch.setenv("PATH", str(python.parent))
    assert client.find_python(Path("python")) == python
    monkeypatch.chdir(python.parent)
    assert client.find_python(Path("./python")) == python


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("~nobody-of-that-name/python", "~nobody-of-that-name/python does not exist"),
        ("n" * 300, "does not exist"),
        ("/dev/null", "/dev/null is not an executable file"),
        ("", ". is a folder without bin/python"),
    ],
)
def test_what_cannot_be_a_python_is_told(named: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        client.find_python(Path(named))
    assert words in str(caught.value)
    assert str(caught.value).endswith("; name a Python interpreter with --worker-python.")


def test_the_environment_keeps_what_the_user_set(tmp_path: Path) -> None:
    environ = {
        "OMP_WAIT_POLICY": "active",
        "HOME": "/root",
        "XDG_CACHE_HOME": str(tmp_path),
        "TORCHINDUCTOR_CACHE_DIR": "/theirs",
    }
    made = client.worker_environment(environ)
    assert made["OMP_WAIT_POLICY"] == "active"
    assert made["HOME"] == "/root"
    assert made["INDUCTOR_PROVENANCE"] == "1"
    assert made["MALLOC_MMAP_MAX_"] == "0"
    assert made["TORCHINDUCTOR_CACHE_DIR"] == f"{tmp_path}/kernel-explorer/inductor"
    assert client.worker_environment({})["OMP_WAIT_POLICY"] == "passive"


def test_a_cache_that_cannot_be_made_is_left_to_torch(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    # Root may write to every folder there, and still make none.
    for place in (blocked, Path("/proc/somewhere")):
        made = client.worker_environment({"XDG_CACHE_HOME": str(place)})
        assert "TORCHINDUCTOR_CACHE_DIR" not in made


@pytest.mark.parametrize(
    ("flags", "compiler", "machine", "expected"),
    [
        ("fpu avx avx2 bmi2", "g++", "x86_64", True),
        ("fpu avx", "g++", "x86_64", False),
        ("fpu avx avx2", "icpx", "x86_64", False),
        ("fpu avx avx2", None, "x86_64", False),
        ("asimd", "g++", "aarch64", False),
    ],
)
def test_the_test_compile_is_skipped_only_where_it_must_succeed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: str,
    compiler: str | None,
    machine: str,
    expected: bool,
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(client, "CPU_FLAGS", tmp_path / "cpuinfo")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    environ = {"PATH": str(tmp_path)}
    if compiler is not None:
        program = tmp_path / compiler
        program.touch()
        program.chmod(0o755)
        environ["CXX"] = compiler
    assert ("TORCHINDUCTOR_VEC_ISA_OK" in client.worker_environment(environ)) == expected


@pytest.mark.parametrize(
    ("returncode", "tail", "words"),
    [
        (-9, "", "as the system does when memory runs out"),
        (-11, "Fatal Python error: Segmentation fault\n\nCurrent thread\n", "fault, SIGSEGV); run"),
        (-6, "terminate called after throwing an instance of 'x'\n", "being 'terminate called"),
        (-15, "", "told to end from outside (SIGTERM)"),
        (143, "", "told to end from outside (SIGTERM)"),
        (130, "", "told to end from outside (SIGINT)"),
        (-64, "", "(SIGRTMAX)"),
        (-99, "", "(signal 99)"),
        (1, "Traceback\n  File\nValueError: bad.\n", "(exit code 1), its last words being 'Value"),
        (0, "", "(exit code 0); run again"),
        (protocol.CANNOT_START_EXIT, "", "could not start; kernel-explorer doctor"),
        (protocol.RESTART_EXIT, "", "gave up a device"),
    ],
)
def test_every_end_has_its_sentence(returncode: int, tail: str, words: str) -> None:
    sentence = client.exit_sentence(returncode, tail)
    assert words in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_a_crash_is_told_by_the_users_innermost_line() -> None:
    program = Path(client.__file__).parents[1]
    stack = "".join(
        f'  File "{file}", line {number} in f\n'
        for file, number in [
            ("/opt/lib/python3.12/ctypes/__init__.py", 517),
            ("/opt/lib/python3.12/site-packages/torch/_ops.py", 3),
            ("/srv/work/my net.py", 47),
            ("/srv/work/train.py", 9),
            (f"{program}/engine/bound.py", 42),
        ]
    )
    others = 'Thread 0x01 (most recent call first):\n  File "/srv/work/other.py", line 1 in g\n'
    tail = f"Fatal Python error: Segmentation fault\n\n{others}\nCurrent thread 0x02:\n{stack}"
    sentence = client.exit_sentence(-11, f"{tail}\n{others}")
    assert "(segmentation fault, SIGSEGV) at my net.py:47; run again" in sentence
    assert "leave out that line" in sentence
    assert " at " not in client.exit_sentence(-11, tail.replace("/srv/work", "/opt/lib/python3.12"))


def test_the_bootstrap_shares_the_exit_code_it_cannot_import() -> None:
    assert bootstrap.CANNOT_START == protocol.CANNOT_START_EXIT


def start_error(python: Path) -> str:
    with (
        WorkerClient(python) as worker,
        pytest.raises((UsageError, WorkerEndedError)) as caught,
    ):
        worker.start()
    return str(caught.value)


def test_a_python_without_torch_is_told_the_remedy(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    sentence = start_error(python)
    assert f"{python} (Python 3." in sentence
    assert f"has no torch: install it there with '{python} -m pip install torch'" in sentence


def test_a_torch_that_is_too_old_is_told(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    packages = next((tmp_path / "env" / "lib").glob("python3*")) / "site-packages"
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").touch()
    (packages / "torch-2.8.0.dist-info").mkdir()
    (packages / "torch-2.8.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0\n"
    )
    assert "has torch 2.8.0, and 2.11 or newer is needed" in start_error(tmp_path / "env")


def test_a_python_that_is_too_old_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2, "final", 0))
    fault = bootstrap.fault_of_python()
    assert fault is not None
    assert "is Python 3.9.2, and 3.11 or newer is needed" in fault


def test_a_program_that_is_no_python_is_told(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho this is not Python >&2\nexit 4\n")
    program.chmod(0o755)
    sentence = start_error(program)
    assert "did not become a worker (exit code 4), its last words being 'this is" in sentence
    program.write_text("no magic number")
    assert "cannot be run (Exec format error)" in start_error(program)


PROBE = """
import importlib.util, json, sys
sys.argv = ["bootstrap.py"]
sys.path.insert(0, {worker_folder!r})
import runpy
bootstrap = runpy.run_path({bootstrap!r})
served = []
import types
server = types.ModuleType("explorer.worker.server")
def serve(arguments):
    names = ["explorer", "kernels", "pynvml", "numpy", "PySide6", "pytest", "client", "mine"]
    found = {{}}
    for name in names:
        spec = importlib.util.find_spec(name)
        found[name] = None if spec is None else spec.origin
    print(json.dumps({{"found": found, "arguments": arguments}}))
    return 0
server.main = serve
sys.modules["explorer.worker.server"] = server
bootstrap["main"]({arguments!r})
"""


def test_only_our_own_names_cross_into_a_foreign_python(tmp_path: Path) -> None:
    """A bare Python sees our modules, none of our packages, and all of its own."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    packages = next((tmp_path / "env" / "lib").glob("python3*")) / "site-packages"
    (packages / "mine.py").touch()
    command = client.worker_command(python)
    assert command[:2] == [str(python), str(client.BOOTSTRAP)]
    arguments = ["--session", "x:Y", *command[2:], "--more"]
    probe = PROBE.format(
        worker_folder=str(client.BOOTSTRAP.parent),
        bootstrap=str(client.BOOTSTRAP),
        arguments=arguments,
    )
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", probe], capture_output=True, text=True, check=True, cwd=tmp_path, env=environ
    )
    answer = json.loads(done.stdout)
    found = answer["found"]
    assert answer["arguments"] == ["--session", "x:Y", "--more"]
    assert found["explorer"] == str(CHECKOUT / "explorer" / "__init__.py")
    assert found["kernels"] == str(CHECKOUT / "kernels" / "__init__.py")
    ours = util.find_spec("pynvml")
    assert ours is not None
    assert found["pynvml"] == ours.origin
    assert found["mine"] == str(packages / "mine.py")
    assert [found[name] for name in ("numpy", "PySide6", "pytest", "client")] == [None] * 4


def test_the_users_own_pynvml_comes_first(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    packages = next((tmp_path / "env" / "lib").glob("python3*")) / "site-packages"
    (packages / "pynvml.py").touch()
    probe = PROBE.format(
        worker_folder=str(client.BOOTSTRAP.parent),
        bootstrap=str(client.BOOTSTRAP),
        arguments=["--session", "x:Y", *client.worker_command(tmp_path / "env")[2:]],
    )
    done = subprocess.run(
        [tmp_path / "env" / "bin" / "python", "-c", probe],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert json.loads(done.stdout)["found"]["pynvml"] == str(packages / "pynvml.py")
