"""Every chain through the session in both directions: a run is all that it promises.

Torch operators, attention's back ends and other sizes have files of their own. What is forward and
backward launches the forward pass's kernels too, so that forward only the compiler runs once more:
there it knows that no gradient is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from explorer.chains import CHAINS
from explorer.chains.descriptor import Chain
from explorer.engine.session import Session
from explorer.model.run import Direction, Scalar
from tests.engine.every_chain import BOTH, FORWARD, runs
from tests.gpu.promises import complaints

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("new_garbage_only"),
    # torch's own modules use what torch deprecates.
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]
SMALL: dict[str, Scalar] = {
    "rows": 256, "columns": 512, "features": 384, "vocabulary": 1000, "elements": 1 << 18, "k": 5,
    "batch": 1, "heads": 4, "seq_len": 128, "head_dim": 64, "hidden": 256, "layers": 1,
}  # fmt: skip
UNTRAINED = ("eager", "compile", "cudagraph", "plan:each", "plan:all")
TRAINED = ("eager", "compile", "cudagraph", "plan:each")
MORE_FORWARD = {
    "decoder-block": ("plan:each",), "feed-forward": ("plan:inductor",),
    "layernorm-gelu": ("plan:inductor",),
}  # fmt: skip
REPLAYED = ("attention", "rmsnorm", "cross-entropy", "feed-forward")
"""Both passes in CUDA graphs of Inductor's own."""
FULL = ("layernorm-gelu", "swiglu", "cross-entropy")
"""Gradients in fp32 as well."""
ODD: dict[str, dict[str, Scalar]] = {
    "layernorm": {"rows": 257, "columns": 1031, "dtype": "fp16"},
    "bias-dropout-residual": {"rows": 257, "columns": 1031},
    "geglu": {"rows": 257, "columns": 1031, "dtype": "fp32"},
    "rotary": {"batch": 2, "heads": 3, "seq_len": 127, "head_dim": 64},
    "cross-entropy": {"rows": 257, "vocabulary": 5003, "dtype": "fp16"},
}


@dataclass(frozen=True)
class Case:
    chain: str
    settings: dict[str, Scalar]
    direction: Direction
    specs: tuple[str, ...]
    what: str = ""

    @property
    def id(self) -> str:
        way = "both" if self.direction is BOTH else "forward"
        return "-".join(part for part in (self.chain, self.what, way) if part)


def cases() -> Iterator[Case]:
    for chain in CHAINS.values():
        sizes = small(chain)
        for place, value in enumerate(chain.compared_values or (None,)):
            compared = {} if chain.compared is None or value is None else {chain.compared: value}
            yield from cases_of(chain, {**sizes, **compared}, value, is_first=place == 0)
        if chain.id in FULL:
            specs = ("compile", "plan:each")
            yield Case(chain.id, {**sizes, "dtype": "fp32"}, BOTH, specs, "fp32")
        if chain.id in ODD:
            yield Case(chain.id, ODD[chain.id], FORWARD, ("compile", "plan:all"), "odd")


def cases_of(
    chain: Chain, settings: dict[str, Scalar], value: Scalar | None, *, is_first: bool
) -> Iterator[Case]:
    what = "" if value is None else str(value)
    if not chain.trains:
        yield Case(chain.id, settings, FORWARD, UNTRAINED, what)
        return
    if not is_first:
        yield Case(chain.id, settings, BOTH, ("eager", "compile"), what)
        return
    yield Case(chain.id, settings, FORWARD, ("compile", *MORE_FORWARD.get(chain.id, ())), what)
    # Hundreds of pieces: the block's ops are those of other chains.
    specs = TRAINED[:-1] if chain.id == "decoder-block" else TRAINED
    replayed = ("compile:reduce-overhead",) if chain.id in REPLAYED else ()
    yield Case(chain.id, settings, BOTH, (*specs, *replayed), what)


def small(chain: Chain) -> dict[str, Scalar]:
    names = {parameter.name for parameter in chain.parameters}
    return {name: value for name, value in SMALL.items() if name in names}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in cases()])
def test_a_run_is_all_that_it_promises(engine: Session, case: Case) -> None:
    made = runs(engine, (case.chain, case.settings), case.specs, case.direction, "cuda:0")
    found = [sentence for run in made for sentence in complaints(run)]

    assert not found, "\n".join(found)
