"""Every built-in chain at one small size, and random partitions of its ops."""

import functools
import random
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest
import torch
from torch import fx

from explorer.chains import CHAINS
from explorer.engine.partition import Partition, PiecewiseCall
from explorer.engine.prepare import ChosenChain, capture_chain, make_ready
from explorer.engine.prepared import Prepared
from explorer.model.fusion import FusionPlan, plan_of
from explorer.model.run import Scalar

CPU = torch.device("cpu")
SMALL: dict[str, dict[str, Scalar]] = {
    "attention": {"heads": 2, "seq_len": 64, "head_dim": 16},
    "attention-scores": {"heads": 2, "seq_len": 64},
    "rotary": {"batch": 1, "heads": 2, "seq_len": 16, "head_dim": 8},
    "cross-entropy": {"rows": 16, "vocabulary": 64},
    "elementwise": {"elements": 256, "k": 5},
    "adam": {"elements": 256},
    "adam-list": {"layers": 1, "hidden": 8},
    "feed-forward": {"rows": 16, "columns": 64, "features": 48},
    "matmul-epilogue": {"rows": 16, "columns": 64, "features": 48},
    "qkv": {"rows": 16, "columns": 64, "projections": "one"},
    "matmul": {"rows": 16, "columns": 64, "features": 48},
    "rmsnorm-fp8": {"rows": 16, "columns": 64, "features": 48, "dtype": "fp8"},
    "decoder-block": {"batch": 2, "seq_len": 8, "hidden": 16, "heads": 2, "features": 24},
}
"""Settings by chain; what is not named is rows by columns."""
QUICK_CHAINS = (
    "attention", "attention-scores", "rmsnorm", "residual-rmsnorm", "layernorm-gelu", "swiglu",
    "adam", "elementwise",
)  # fmt: skip
"""Those whose plans are compiled in every test run; the others' plans in the slow one."""
_ROWS = {"rows": 16, "columns": 64}


@functools.cache
def chosen(chain: str) -> ChosenChain:
    """The chain in fp32, if it has that, at the small size."""
    return capture_chain(chain, {"dtype": "fp32", **SMALL.get(chain, _ROWS)}, CPU)


def ready(chain: str) -> Prepared:
    """The same with inputs, fresh for each test."""
    return make_ready(chosen(chain), seed=0)


def ops_of(chain: str) -> list[str]:
    """Names of its ops."""
    return [op.name for op in chosen(chain).captured.graph.ops]


def random_plans(chain: str, count: int) -> Iterator[FusionPlan]:
    """Random partitions into few and into many groups, legal or not, always the same ones.

    Every other one cuts the chain's order into pieces, which is always legal: of a long chain's ops
    hardly any others are. Each comes once, so that a short chain has fewer than were asked for.
    """
    ops = ops_of(chain)
    seen: set[FusionPlan] = set()
    for seed in range(count):
        draw = random.Random(seed)
        most = 1 + seed // 2 % len(ops)
        groups: dict[int, list[str]] = {}
        drawn = [draw.randrange(most) for _ in ops]
        for op, group in zip(ops, sorted(drawn) if seed % 2 else drawn, strict=True):
            groups.setdefault(group, []).append(op)
        plan = plan_of(ops, groups.values())
        if plan not in seen:
            seen.add(plan)
            yield plan


def plainly(partition: Partition) -> Callable[..., list[Any]]:
    """A partition that runs without a compiler."""

    def call_of(module: fx.GraphModule) -> Callable[[list[Any]], tuple[Any, ...]]:
        return lambda values: tuple(module(*values))

    return PiecewiseCall(partition, [call_of(piece.module) for piece in partition.pieces])


ALL_CHAINS = tuple(CHAINS)


def slow_but(quick: Collection[str]) -> list[Any]:
    """Every chain as a test's parameter, of which only some are in each test run."""
    return [
        chain if chain in quick else pytest.param(chain, marks=pytest.mark.slow)
        for chain in ALL_CHAINS
    ]
