"""Durations of launches from the profiler against ncu's, over twenty launches of each kernel."""

import csv
import io
import shutil
import statistics
import subprocess
import sys

import pytest
import torch

from explorer.engine.measure.trace import trace_calls
from tests.gpu.eager_attention import attention

pytestmark = pytest.mark.gpu

OPS = ("qk", "scale", "mask", "softmax", "dropout", "pv")
CALLS = 20
METRIC = "gpu__time_duration.sum"


def ncu_durations_us() -> list[list[float]]:
    """For each op, ncu's durations of its launches; clocks and caches left alone."""
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("ncu is not installed")
    command = [ncu, "--profile-from-start", "off", "--clock-control", "none"]
    command += ["--cache-control", "none", "--csv", "--print-units", "base", "--page", "raw"]
    command += ["--metrics", METRIC, sys.executable, "-m", "tests.gpu.eager_attention"]
    command += [str(CALLS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    table = done.stdout[done.stdout.find('"ID"') :]
    rows = [row for row in csv.DictReader(io.StringIO(table)) if row["ID"]]
    assert len(rows) == CALLS * len(OPS), f"{done.stdout[-800:]} {done.stderr[-800:]}"
    durations = [float(row[METRIC].replace(",", "")) / 1000 for row in rows]
    return [durations[place :: len(OPS)] for place in range(len(OPS))]


def own_durations_us() -> list[list[float]]:
    """For each op, the profiler's durations of its launches."""
    calls = trace_calls(attention(), CALLS)
    kernels = [[event for event in call if event.is_kernel] for call in calls]
    assert all(len(call) == len(OPS) for call in kernels)
    return [[call[place].duration_us for call in kernels] for place in range(len(OPS))]


def spread(samples: list[float]) -> float:
    """Distance of the quartiles from each other, as a share of the median."""
    quartiles = statistics.quantiles(samples, n=4)
    return (quartiles[2] - quartiles[0]) / quartiles[1]


def test_durations_are_those_of_ncu() -> None:
    """Within 3 % of the median, or the run-to-run spread where that is larger."""
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    for op, own, theirs in zip(OPS, own_durations_us(), ncu_durations_us(), strict=True):
        ours, other = statistics.median(own), statistics.median(theirs)
        allowed = max(0.03, spread(own), spread(theirs))
        line = f"{op:8} {ours:8.1f} us, ncu {other:8.1f} us, {ours / other - 1:+.2%}"
        sys.stdout.write(f"\n{line}, allowed {allowed:.1%}")
        assert abs(ours / other - 1) <= allowed, line
