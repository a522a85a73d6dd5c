"""torch's own fused operators and those of libraries: tables with a line a chain."""

import dataclasses
import importlib.machinery
import importlib.util

import pytest
import torch

from explorer.chains import CHAINS
from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.prepare import prepare
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import Case, find_strategy
from explorer.engine.strategies.flashinfer import FLASHINFER
from explorer.engine.strategies.library import Library
from explorer.engine.strategies.liger import LIGER
from explorer.engine.strategies.quack import QUACK
from explorer.engine.strategies.torch_operators import TORCH
from explorer.model.device import DeviceKind
from explorer.model.run import Direction

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
SMALL = {"rows": 32, "columns": 48, "features": 40, "vocabulary": 97, "elements": 1000}
PEERS = (LIGER, QUACK, FLASHINFER)


def small(chain_id: str) -> dict[str, object]:
    names = {parameter.name for parameter in CHAINS[chain_id].parameters}
    return {name: value for name, value in SMALL.items() if name in names}


def case(chain_id: str, device: torch.device = CPU, **settings: object) -> Case:
    chain = CHAINS[chain_id]
    parameters = chain.resolve({**small(chain_id), **settings}, DeviceKind.CPU)
    return Case(chain=chain, parameters=parameters, device=device)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every library is there, as far as one looks for it."""
    spec = importlib.machinery.ModuleSpec("anything", None, origin="somewhere")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: spec)


def cases() -> list[tuple[str, Direction]]:
    return [
        (chain_id, direction)
        for chain_id in TORCH.operators
        for direction in Direction
        # A list of parameters is large even where it is small.
        if chain_id != "adam-list"
        if direction is Direction.FORWARD or CHAINS[chain_id].trains
    ]


@pytest.mark.parametrize(("chain_id", "direction"), cases())
def test_torchs_own_operator_gives_the_chains_results(chain_id: str, direction: Direction) -> None:
    prepared = prepare(chain_id, small(chain_id), CPU, direction=direction)
    expected = [value.clone() for value in prepared.results(prepared.caller(prepared.function)())]
    built = find_strategy("torch").build(prepared)
    prepared.restore_inputs()
    for got, wanted in zip(prepared.results(built.call()), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


def recorded(prepared: Prepared) -> LaunchRecord:
    strategy = find_strategy("torch")
    built = strategy.build(prepared)
    return record_launches(
        built.call,
        prepared=prepared,
        strategy=strategy.info(),
        counters=None,
        library=built.library,
    )


def ops_by_launch(prepared: Prepared) -> dict[str, tuple[str, ...]]:
    return {launch.kernel: launch.ops for launch in recorded(prepared).launches}


def test_one_operator_carries_out_the_whole_of_each_pass() -> None:
    prepared = prepare(
        "residual-layernorm",
        small("residual-layernorm"),
        CPU,
        direction=Direction.FORWARD_BACKWARD,
    )
    forward = [op.name for op in prepared.graph.ops if not op.is_backward]
    ops = ops_by_launch(prepared)
    assert forward[0] == "residual"
    assert ops["aten.native_layer_norm.default"] == tuple(forward[1:])
    backward = ops["aten.native_layer_norm_backward.default"]
    assert backward
    assert all(name.startswith("d_") for name in backward)


def test_operators_that_are_told_apart_by_name_share_the_ops() -> None:
    ops = ops_by_launch(prepare("cross-entropy", small("cross-entropy"), CPU))
    assert ops == {
        "aten._log_softmax.default": ("max", "subtract", "exp", "sum", "log", "loss"),
        "aten.nll_loss_forward.default": ("pick", "mean"),
    }


def test_the_fused_optimizer_is_one_launch_that_updates_in_place() -> None:
    prepared = prepare("adam", small("adam"), CPU)
    [(kernel, ops)] = ops_by_launch(prepared).items()
    assert kernel == "aten._fused_adam_.default"
    assert ops == tuple(op.name for op in prepared.graph.ops)


def test_the_fused_optimizer_writes_no_gradients() -> None:
    prepared = prepare("adam", {"elements": 1000}, CPU)
    [launch] = recorded(prepared).launches
    moved = {a.tensor: (a.bytes_read, a.bytes_written) for a in launch.accesses}
    assert {name: moved[name] for name in "pgmv"} == {
        "p": (4000, 4000), "g": (4000, 0), "m": (4000, 4000), "v": (4000, 4000),
    }  # fmt: skip


def test_what_torch_computes_op_by_op_on_a_cpu_is_said() -> None:
    built = find_strategy("torch").build(prepare("rmsnorm", small("rmsnorm"), CPU))
    assert built.backend == "torch.nn.functional.rms_norm"
    assert built.notes == (
        "torch has no kernel of rms_norm for a CPU and computes it op by op there.",
    )


def test_a_chain_that_a_library_has_nothing_for_is_refused() -> None:
    reason = find_strategy("torch").refusal(case("swiglu"))
    assert reason is not None
    assert reason.startswith("torch has no fused operator for swiglu; it has some for rmsnorm,")


@pytest.mark.parametrize("library", [TORCH, *PEERS], ids=lambda library: library.name)
def test_a_table_names_chains_and_ops_that_there_are(library: Library) -> None:
    assert library.operators
    for chain_id, operator in library.operators.items():
        assert operator.chain_id == chain_id
        known = {op.name for op in CHAINS[chain_id].all_ops}
        named = {name for _, ops in operator.ops for name in ops}
        assert named <= known, chain_id


@pytest.mark.parametrize("library", PEERS, ids=lambda library: library.name)
def test_a_library_that_is_not_there_says_what_to_install(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    reason = find_strategy(library.name).refusal(case("rmsnorm", GPU))
    assert reason == (
        f"{library.name} needs the package {library.package}, which is not installed for this "
        f"Python; `pip install {library.package}` does it."
    )


def test_a_folder_of_the_same_name_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = importlib.machinery.ModuleSpec("quack", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: folder)
    assert "not installed" in str(find_strategy("quack").missing())


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("library", PEERS, ids=lambda library: library.name)
def test_a_library_for_gpus_is_refused_on_a_cpu(library: Library) -> None:
    strategy = find_strategy(library.name)
    assert "needs an NVIDIA GPU" in str(strategy.refusal(case("rmsnorm")))
    assert strategy.refusal(case("rmsnorm", GPU)) is None


@pytest.mark.usefixtures("installed")
def test_what_would_overwrite_its_inputs_is_not_trained() -> None:
    liger = find_strategy("liger")
    forward = case("swiglu", GPU)
    assert liger.refusal(forward) is None
    training = dataclasses.replace(forward, direction=Direction.FORWARD_BACKWARD)
    assert liger.refusal(training) == (
        "liger runs swiglu forward only, since its backward pass writes the gradients over the "
        "inputs; leave --backward out."
    )
    assert liger.refusal(dataclasses.replace(training, chain=CHAINS["rmsnorm"])) is None
    assert "set gelu=tanh" in str(liger.refusal(case("geglu", GPU, gelu="exact")))
