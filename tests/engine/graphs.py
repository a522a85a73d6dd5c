"""Every built-in chain at one small size, and random partitions of its ops."""

import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx

from explorer.chains import CHAINS
from explorer.engine.partition import Partition, PiecewiseCall
from explorer.engine.prepare import ChosenChain, capture_chain, make_ready
from explorer.engine.prepared import Prepared
from explorer.model.fusion import FusionPlan, plan_of

CPU = torch.device("cpu")
SMALL = {
    "attention": {"heads": 2, "seq_len": 64, "head_dim": 16},
    "attention-scores": {"heads": 2, "seq_len": 64},
    "rotary": {"batch": 1, "heads": 2, "seq_len": 16, "head_dim": 8},
    "cross-entropy": {"rows": 16, "vocabulary": 64},
    "elementwise": {"elements": 256, "k": 5},
    "adam": {"elements": 256},
}
"""Settings by chain; what is not named is rows by columns."""
_ROWS = {"rows": 16, "columns": 64}


@functools.cache
def chosen(chain: str) -> ChosenChain:
    """The chain in fp32 at the small size."""
    return capture_chain(chain, {**SMALL.get(chain, _ROWS), "dtype": "fp32"}, CPU)


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
