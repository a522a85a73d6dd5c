"""Wrong usage: exit code 2 and one sentence that names the thing, before any worker starts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from explorer import __version__
from explorer.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Outcome

WRONG = {
    "frobnicate": "'frobnicate'",
    "chains nope": "There is no chain 'nope'",
    "run": "CHAIN",
    "run nope": "There is no chain 'nope'",
    "run attention --strategy fastest": "There is no strategy 'fastest'",
    "run attention --strategy compile:fast": "no option 'fast'",
    "run attention --strategy aot": "'aot' is not yet built",
    "run attention --strategy plan": "'plan' lacks its plan: write plan:scale+mask|softmax",
    "run attention --strategy plan:": "'plan:' lacks its plan",
    "run attention --strategy plan:qk+relu": "attention has no op 'relu'; its ops are qk, scale,",
    "run attention --strategy plan:qk+|pv": "lacks the name of an op after 'qk'",
    "run attention --strategy plan:qk|qk": "names 'qk' twice; an op belongs to one kernel",
    "run attention --set mask=none --strategy plan:scale+mask": (
        "attention has no op 'mask' with mask=none; its ops are qk, scale, softmax"
    ),
    "run attention --strategy plan:triton": "attention has no kernels written by hand yet",
    "export a.kx b.png --plan qk+scale": "--plan is for a module; name a file that ends in .py",
    "check": "FILE",
    "check a.kx --bytes 5": "'5' is no percentage such as 1% or 0.5%",
    "check a.kx --time -3%": "--time",
    "check a.kx --time many%": "'many%' is no percentage",
    "check a.kx --device tpu": "'tpu' is not auto, cpu, cuda or cuda:N",
    "run attention --set color=red": "no parameter 'color'",
    "run attention --set seq_len=0": "seq_len=0 is out of range: it takes 1 to 1,048,576",
    "run attention --set seq_len=1.5": "seq_len=1.5 is not a whole number",
    "run attention --set seq_len=inf": "seq_len=inf is not a whole number",
    "run attention --set seq_len=many": "seq_len=many is not a whole number",
    "run attention --set dropout=1": "dropout=1 is out of range: it takes 0 to below 1",
    "run attention --set dtype=fp7": "dtype=fp7 is not one of fp32, tf32, bf16, fp16",
    "run attention --set seq_len": "'seq_len' should be name=value",
    "run attention --set =3": "'=3' should be name=value",
    "run attention --device tpu": "'tpu' is not auto, cpu, cuda or cuda:N",
    "run attention --seed -1": "--seed",
    "run attention --seed x": "'x' is no whole number from 0 to 9223372036854775807",
    "run attention --seed 9223372036854775808": "'9223372036854775808' is no whole number from 0",
    "run attention --seed \u0663": "'\u0663' is no whole number",
    "run attention --device cuda:00": "'cuda:00' is not auto, cpu, cuda or cuda:N",
    "run attention --device cuda:\u0663": "is not auto, cpu, cuda or cuda:N",
    "run attention --set seq_len=8 --set seq_len=9": "seq_len is set twice",
    "run attention --strat eager": "unrecognized arguments: --strat",
    "run attention --strategy compile:": "no option ''",
    "run attention --sweep seq_len=1:2": "seq_len=1:2 is no range",
    "run attention --input x=fp32[3]": "--input is for one's own code",
    "run my.py:f": "my.py is not there",
    "run attention --worker-python /no/such/python": "/no/such/python does not exist",
    "doctor --worker-python /no/such/python": "/no/such/python does not exist",
    "export a.kx b.svg": "Export to .svg is not yet built",
    "export a.kx b.mp4": "Export to .mp4 is not yet built",
    "export a.kx b.doc": "b.doc has no known format",
    "export a.kx b": "b has no known format",
    "export a.kx b.png --view front": "There is no view 'front'; there are window, scene,",
    "export a.kx b.png --size 100": "'100' is no size such as 1440x900",
    "export a.kx b.png --size 4x4": "each side from 16 to 16384",
    "export a.kx b.png --size 99999x100": "each side from 16 to 16384",
    "export a.kx b.png --scale 0": "'0' is no factor from 0.1 to 8",
    "export a.kx b.png --scale wide": "'wide' is no factor",
    "export a.kx b.png --theme blue": "'blue'",
    "export a.kx b.png --at noon": "'noon' is no time such as 350us or 1.2ms",
    "export a.kx b.png --at -5": "--at",
    f"export a.kx b.png --at {'9' * 400}": "is no time such as 350us or 1.2ms",
    f"export a.kx b.png --size {'9' * 5000}x100": "is no size such as 1440x900",
    "export a.kx b.png --size 16x16 --scale 0.1": "would have 2x2 pixels, and needs 16 or more",
    "export a.kx b.png --duration 3": "--duration is for clips",
    "export a.kx b.png --fps 30": "--fps is for clips",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_usage_is_told_in_one_sentence(cli: Callable[..., Outcome], line: str) -> None:
    done = cli(*line.split())
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert done.err.startswith("kernel-explorer: ")
    assert done.err.endswith(".\n")
    assert WRONG[line] in done.err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"kernel-explorer {__version__}\n"


def test_a_mistake_of_our_own_is_told_without_a_traceback(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(options: object) -> int:
        raise KeyError("a key")

    monkeypatch.setattr("explorer.cli.chains.execute", stumble)
    monkeypatch.delenv("KERNEL_EXPLORER_DEBUG", raising=False)
    done = cli("chains")
    assert done.code == 1
    assert "a mistake in this program, KeyError: 'a key'" in done.err
    assert "Traceback" not in done.err
    monkeypatch.setenv("KERNEL_EXPLORER_DEBUG", "1")
    with pytest.raises(KeyError):
        cli("chains")


def test_too_little_memory_is_no_mistake_of_ours(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(options: object) -> int:
        raise MemoryError

    monkeypatch.setattr("explorer.cli.chains.execute", fill)
    done = cli("chains")
    assert done.code == 1
    assert done.err.startswith("kernel-explorer: there is not enough memory for it;")


def test_an_interrupt_anywhere_exits_130(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("explorer.cli.chains.execute", wait)
    done = cli("chains")
    assert (done.code, done.err) == (130, "kernel-explorer: interrupted.\n")


def test_chains_lists_what_can_be_picked(cli: Callable[..., Outcome]) -> None:
    done = cli("chains")
    assert done.code == 0
    line = next(line for line in done.out.splitlines() if line.startswith("attention "))
    assert re.split(r"\s{2,}", line) == [
        "attention", "Attention, as in the textbook", "qk scale mask softmax dropout pv",
    ]  # fmt: skip
    chains = json.loads(cli("chains", "--json").out)["chains"]
    assert chains[0]["name"] == "attention"


def test_a_chain_is_told_with_defaults_ranges_and_ops(cli: Callable[..., Outcome]) -> None:
    text = cli("chains", "attention").out
    assert "seq_len        4096      1024  1 to 1,048,576 " in text
    assert text.splitlines()[-2:] == [
        "plans: 'plan:scale+mask|softmax+dropout', plan:each, plan:inductor, plan:all, plan:*",
        "  + within a kernel, | between kernels; what is not named stays alone",
    ]
    plain = json.loads(cli("chains", "attention", "--json").out)
    assert [op["name"] for op in plain["ops"]] == [
        "qk", "scale", "mask", "softmax", "dropout", "pv",
    ]  # fmt: skip
    assert plain["plan_forms"] == [
        "plan:scale+mask|softmax+dropout", "plan:each", "plan:inductor", "plan:all", "plan:*",
    ]  # fmt: skip
    by_name = {parameter["name"]: parameter for parameter in plain["parameters"]}
    assert by_name["seq_len"]["default"] == {"cuda": 4096, "cpu": 1024}
    assert by_name["dropout"]["range"] == "0 to below 1"
    assert by_name["mask"]["choices"] == ["additive", "causal", "none"]


def test_a_chain_of_any_length_says_how_many_ops_are_run(cli: Callable[..., Outcome]) -> None:
    assert "\nThe first k of them are run, by default 8.\n" in cli("chains", "elementwise").out
    assert "The first" not in cli("chains", "attention").out


def test_doctor_says_what_can_be_measured_and_the_remedy(cli: Callable[..., Outcome]) -> None:
    done = cli("doctor")
    assert done.code == 0
    assert "cpu: Two-core test processor (the default)" in done.out
    assert "bytes: modelled. A CPU has no counter that we read." in done.out
    assert "cudagraph  no       It needs a GPU." in done.out
    assert (
        "\ncounters  missing  There are none.\n                   Remedy: Use a GPU.\n" in done.out
    )
    assert "\nFonts     works    Inter" in done.out
    plain = json.loads(cli("doctor", "--json").out)
    assert plain["checks"][0] == {
        "name": "compiler", "ok": True, "sentence": "g++ is there.", "lost": None,
        "remedy": None,
    }  # fmt: skip


def test_a_python_without_torch_is_wrong_usage(
    cli: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import venv

    from explorer.cli import doctor, run
    from explorer.worker.blocking import WorkerClient

    for module in (run, doctor):
        monkeypatch.setattr(module, "WorkerClient", WorkerClient)
    venv.create(tmp_path / "env", with_pip=False)
    for line in (["run", "attention"], ["doctor"]):
        done = cli(*line, "--worker-python", str(tmp_path / "env"))
        assert (done.code, done.out) == (2, "")
        assert "has no torch: install it there with" in done.err.splitlines()[-1]
