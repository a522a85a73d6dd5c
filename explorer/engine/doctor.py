"""What this machine can measure, what it cannot, and the remedy."""

import logging
import os
import platform
import shutil
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

from explorer.engine.cupti.environment import counters_admin_only, is_wsl
from explorer.engine.devices import triton_version
from explorer.engine.faults import first_line
from explorer.engine.measure.clocks import Nvml
from explorer.engine.measure.known_bytes import TOLERANCE, KnownBytesCheck, check_known_bytes
from explorer.engine.toolchain import c_compiler, cxx_compiler, python_headers
from explorer.model.device import Abilities, DeviceAbility, DeviceKind
from explorer.model.errors import ExplorerError
from explorer.model.messages import Check
from explorer.model.places import cache_folder, nearest_existing
from explorer.model.units import format_bytes, format_flops_rate, format_rate

_logger = logging.getLogger(__name__)

_INSTALL_COMPILER = "Install it; on Debian or Ubuntu: `apt install g++ python3-dev`."
_COMPILED = (
    "the compiled strategies and fusion plans; eager, CUDA graphs and torch's operators stay."
)
_TRUST = "trust in the counted bytes."
_COUNTED = "the bytes that really moved; a model of them knows no caches."


def examine(abilities: Abilities, device: torch.device) -> tuple[Check, ...]:
    """Look at everything a measurement depends on.

    Args:
        abilities: What the worker says of itself.
        device: The device to look at closely.
    """
    ability = next(a for a in abilities.devices if a.device.id == str(device))
    checks = [*_software(), *_compilers(device)]
    if all(check.ok for check in checks):
        checks.append(_compiling(device))
    checks += [_device(ability), _cache()]
    if ability.device.kind is DeviceKind.CUDA:
        checks += [*_gpu(device), _counters(ability)]
        if ability.counters:
            checks += _known_bytes(device)
        checks.append(_referee())
    else:
        checks.append(
            Check(name="DRAM counters", ok=False, sentence=ability.counters_sentence, lost=_COUNTED)
        )
    return tuple(checks)


def _software() -> Iterator[Check]:
    yield Check(
        name="Python", ok=True, sentence=f"Python {platform.python_version()} ({sys.executable})."
    )
    cuda = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
    yield Check(name="torch", ok=True, sentence=f"torch {torch.__version__}, built with {cuda}.")


def _compilers(device: torch.device) -> Iterator[Check]:
    on_gpu = device.type == "cuda"
    compiler, language = (c_compiler(), "C") if on_gpu else (cxx_compiler(), "C++")
    yield Check(
        name=f"{language} compiler",
        ok=compiler is not None,
        sentence=f"{compiler}." if compiler else f"There is no {language} compiler.",
        lost=None if compiler else _COMPILED,
        remedy=None if compiler else _INSTALL_COMPILER,
    )
    header = python_headers()
    yield Check(
        name="Python headers",
        ok=header is not None,
        sentence=f"{header}." if header else "Python.h is missing.",
        lost=None if header else _COMPILED,
        remedy=None if header else _INSTALL_COMPILER,
    )
    if on_gpu:
        triton = triton_version()
        yield Check(
            name="Triton",
            ok=triton is not None,
            sentence=f"triton {triton}." if triton else "Triton is missing.",
            lost=None if triton else _COMPILED,
            remedy=None if triton else "Install the release that torch names: pip install triton.",
        )


def _compiling(device: torch.device) -> Check:
    """Compile a small function and run it: compiler, headers and caches at once."""
    started_s = time.perf_counter()
    torch.compiler.reset()
    try:
        with warnings.catch_warnings():
            # What a compiler warns of as it is loaded is no trouble of this machine's.
            warnings.simplefilter("ignore")
            x = torch.ones(1024, device=device)
            is_right = bool((torch.compile(_doubled)(x) == 2).all())
        trouble = "" if is_right else "what it made computes something else."
    except Exception as error:
        # Whatever a compiler raises is what this check is there to tell.
        _logger.info("the doctor's function does not compile", exc_info=True)
        trouble = f"{type(error).__name__}: {first_line(error)}"
    finally:
        torch.compiler.reset()
    took_s = time.perf_counter() - started_s
    return Check(
        name="torch.compile",
        ok=not trouble,
        sentence=f"Compiled and ran a kernel in {took_s:.1f} s."
        if not trouble
        else f"A kernel could not be compiled and run ({trouble.rstrip('.')}).",
        lost=_COMPILED if trouble else None,
        remedy="Run `TORCH_LOGS=+inductor kernel-explorer doctor`, which prints what the compiler "
        "says, and mend what it names."
        if trouble
        else None,
    )


def _doubled(x: torch.Tensor) -> torch.Tensor:
    return x + x


def _device(ability: DeviceAbility) -> Check:
    device = ability.device
    sentence = (
        f"{device.name}: {format_bytes(device.free_bytes)} of {format_bytes(device.memory_bytes)} "
        f"free, last-level cache {format_bytes(device.l2_bytes)}"
    )
    if device.ceilings is None:
        sentence += "; its ceilings are measured with the first run."
    else:
        best = max(device.ceilings.flops_per_s.values(), default=0.0)
        sentence += (
            f"; it reached {format_rate(device.ceilings.memory_bytes_per_s)} and "
            f"{format_flops_rate(best)}."
        )
    return Check(name=device.id, ok=True, sentence=sentence)


def _cache() -> Check:
    folder = cache_folder()
    writable = os.access(nearest_existing(folder), os.W_OK)
    return Check(
        name="Cache",
        ok=writable,
        sentence=f"{folder}." if writable else f"{folder} cannot be written.",
        lost=None if writable else "ceilings and what was compiled, which are made anew each time.",
        remedy=None if writable else "Let XDG_CACHE_HOME name a folder that can be written.",
    )


def _gpu(device: torch.device) -> Iterator[Check]:
    nvml = Nvml(device)
    yield Check(
        name="NVML",
        ok=nvml.found,
        sentence=f"Driver {nvml.driver()}; clocks, temperature and power can be read."
        if nvml.found
        else "NVML does not answer.",
        lost=None if nvml.found else "clocks, temperature and what throttled, in every run.",
        remedy=None if nvml.found else "Install nvidia-ml-py beside torch, and check nvidia-smi.",
    )
    if nvml.drives_display():
        yield Check(
            name="Display",
            ok=True,
            sentence=f"{device} drives a display: no launch predicted over 0.2 s is run.",
        )


def _counters(ability: DeviceAbility) -> Check:
    admin_only = counters_admin_only()
    known = {True: "1", False: "0", None: "not given"}[admin_only]
    where = ", on WSL2" if is_wsl() else ""
    return Check(
        name="DRAM counters",
        ok=ability.counters,
        sentence=f"{ability.counters_sentence} (RmProfilingAdminOnly: {known}{where})",
        lost=None if ability.counters else _COUNTED,
        # The refusal's sentence holds its remedy.
        remedy=None,
    )


def _known_bytes(device: torch.device) -> list[Check]:
    try:
        found = check_known_bytes(device.index)
    except ExplorerError as error:
        return [Check(name="Known bytes", ok=False, sentence=str(error), lost=_TRUST)]
    return [_known_bytes_check(check) for check in found]


def _known_bytes_check(check: KnownBytesCheck) -> Check:
    return Check(
        name=f"Known bytes: {check.name}",
        ok=check.agrees,
        sentence=(
            f"read {format_bytes(check.counted_read)} of {format_bytes(check.expected_read)}, "
            f"wrote {format_bytes(check.counted_written)} of "
            f"{format_bytes(check.expected_written)}: {check.relative_error:.2%} off."
        ),
        lost=None if check.agrees else _TRUST,
        remedy=None
        if check.agrees
        else f"More than {TOLERANCE:.0%} off: run again with nothing else on the GPU.",
    )


def _referee() -> Check:
    path = shutil.which("ncu") or _toolkit_ncu()
    return Check(
        name="ncu",
        ok=True,
        sentence=f"{path}." if path else "Not found; only the tests use it, as a referee.",
    )


def _toolkit_ncu() -> str | None:
    for folder in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if folder and (path := Path(folder) / "bin" / "ncu").is_file():
            return str(path)
    return None
