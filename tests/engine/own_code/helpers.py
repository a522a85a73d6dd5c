"""What the tests of own code share: capture and run it on the CPU."""

import functools
from pathlib import Path

import torch

from explorer.engine.comparison import Comparison
from explorer.engine.prepare import ChosenChain, Subject, capture_subject, make_ready
from explorer.engine.prepared import Prepared
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Scalar

CPU = torch.device("cpu")
MODULES = Path(__file__).parent / "modules"
FUNCTIONS, LAYERS = str(MODULES / "functions.py"), str(MODULES / "layers.py")


@functools.cache
def captured(
    name: str,
    inputs: str = "",
    init: str = "",
    *,
    training: bool = False,
    backward: bool = False,
    **settings: Scalar,
) -> ChosenChain:
    """Own code captured for the CPU, once for each way to call it."""
    own = OwnCode(inputs=inputs, init=init, training=training)
    direction = Direction.FORWARD_BACKWARD if backward else Direction.FORWARD
    return capture_subject(
        Subject(chain=name, settings=settings, direction=direction, own=own), CPU
    )


def ops(chosen: ChosenChain) -> list[str]:
    """Names of the ops."""
    return [op.name for op in chosen.captured.graph.ops]


def called(prepared: Prepared) -> tuple[torch.Tensor, ...]:
    """Everything that one call leaves behind."""
    return prepared.results(prepared.caller(prepared.function)())


def eager_passes(chosen: ChosenChain, seed: int = 0) -> bool:
    """Whether eager is as close to the truth as its dtype lets it be, on everything."""
    comparison = Comparison(make_ready(chosen, seed), chosen.code, chosen.capture_calm)
    comparison.measure_eager(whole=True)
    assert comparison.reference.coverage == 1
    return all(
        not error.not_finite and error.max_abs <= 0.02 * max(comparison.reference.max_abs[i], 1)
        for i, error in comparison._eager_errors.items()
    )
