"""A step of Adam on a list of parameters: ops over lists, updates in place, torch's optimizers."""

import functools
from typing import TYPE_CHECKING

import pytest
import torch

from explorer.chains.descriptor import OpName
from explorer.engine.capture import Captured, capture
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.chain_functions.adam_list import fused_step
from explorer.engine.chain_functions.base import InputSpec
from explorer.engine.graph_builder import CaptureError
from explorer.engine.plan_pieces import partition_by
from explorer.engine.prepare import ChosenChain, capture_chain, make_ready
from explorer.engine.prepared import ChainFunction, Prepared
from explorer.model.errors import UsageError
from explorer.model.fusion import all_in_one, each_alone, parse_plan
from explorer.model.opgraph import OpKind
from explorer.model.planned import planned_bytes
from tests.engine.graphs import plainly

if TYPE_CHECKING:
    from collections.abc import Iterable

CPU = torch.device("cpu")
HIDDEN = 8
ELEMENTS = 4 * 8 * 8 + 3 * 8 * 22 + 2 * 8
"""Of a layer's parameters: 22 is 11/4 of 8."""
N_TENSORS = 9
IN_A_STEP = ["momentum", "decay", "variance", "root", "correct", "eps", "update"]
CODE = CHAIN_CODE["adam-list"]
EVERY_FORM = pytest.mark.parametrize("implementation", ["for-loop", "foreach"])
EVERY_OPTIMIZER = pytest.mark.parametrize("optimizer", ["adam", "adamw"])


@functools.cache
def chosen(implementation: str, optimizer: str = "adamw", dtype: str = "fp32") -> ChosenChain:
    settings = {
        "layers": 1, "hidden": HIDDEN, "dtype": dtype, "optimizer": optimizer,
        "implementation": implementation,
    }  # fmt: skip
    return capture_chain("adam-list", settings, CPU)


def ready(implementation: str, optimizer: str = "adamw", dtype: str = "fp32") -> Prepared:
    return make_ready(chosen(implementation, optimizer, dtype), seed=0)


def torchs_step(prepared: Prepared, optimizer: str) -> dict[str, torch.Tensor]:
    """The inputs behind a step of torch's own optimizer at its tenth step."""
    after = {name: tensor.clone() for name, tensor in prepared.inputs.items()}
    parameters = [torch.nn.Parameter(after[f"p{n}"]) for n in range(N_TENSORS)]
    made = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimizer]
    stepping = made(parameters, lr=1e-3, foreach=False)
    for n, parameter in enumerate(parameters):
        parameter.grad = after[f"g{n}"]
        stepping.state[parameter] = {
            "step": torch.tensor(9.0), "exp_avg": after[f"m{n}"], "exp_avg_sq": after[f"v{n}"],
        }  # fmt: skip
    stepping.step()
    return after


def same(got: "Iterable[torch.Tensor]", expected: "Iterable[torch.Tensor]") -> None:
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


@EVERY_FORM
@EVERY_OPTIMIZER
def test_it_is_a_step_of_torchs_optimizer(implementation: str, optimizer: str) -> None:
    prepared = ready(implementation, optimizer)
    expected = torchs_step(prepared, optimizer)
    assert prepared.function(*prepared.inputs.values()) is None
    for name, tensor in prepared.inputs.items():
        torch.testing.assert_close(tensor, expected[name], msg=name)


@EVERY_OPTIMIZER
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_torchs_fused_operator_does_the_same_and_again_the_same(optimizer: str, dtype: str) -> None:
    mine, fused = ready("for-loop", optimizer, dtype), ready("for-loop", optimizer, dtype)
    step = fused_step(fused.parameters)
    for _ in range(2):
        mine.function(*mine.inputs.values())
        assert step(*fused.inputs.values()) is None
    # bf16 is rounded at each op by one, and once by the other.
    rtol, atol = (3e-2, 1e-3) if dtype == "bf16" else (1e-5, 1e-7)
    for name, tensor in mine.inputs.items():
        torch.testing.assert_close(fused.inputs[name], tensor, rtol=rtol, atol=atol)


@EVERY_OPTIMIZER
def test_one_op_for_the_list_reads_and_updates_all_of_it(optimizer: str) -> None:
    graph = chosen("foreach", optimizer).captured.graph
    assert [op.name for op in graph.ops] == ["shrink"] * (optimizer == "adamw") + IN_A_STEP
    by_name = {op.name: op for op in graph.ops}
    every = {kind: tuple(f"{kind}{n}" for n in range(N_TENSORS)) for kind in "pgmv"}
    assert by_name["momentum"].reads == (*every["m"], *every["g"])
    assert by_name["momentum"].writes == every["m"]
    assert by_name["root"].writes == tuple(f"root_v{n}" for n in range(N_TENSORS))
    assert by_name["update"].writes == every["p"]
    assert by_name["update"].flops == by_name["momentum"].flops == 3 * ELEMENTS
    assert by_name["root"].flops == ELEMENTS
    assert {op.kind for op in graph.ops} == {OpKind.ELEMENTWISE}


def test_in_a_loop_each_tensor_has_ops_of_its_own() -> None:
    captured = chosen("for-loop", "adamw").captured
    names = [f"{op}_{n}" for n in range(N_TENSORS) for op in ["shrink", *IN_A_STEP]]
    assert [op.name for op in captured.graph.ops] == names
    assert captured.updated == tuple(f"{kind}{n}" for n in range(N_TENSORS) for kind in "pmv")


@EVERY_FORM
@EVERY_OPTIMIZER
@pytest.mark.parametrize("max_bytes", [1, 1 << 30])
def test_the_reference_has_each_result_at_its_place(
    implementation: str, optimizer: str, max_bytes: int
) -> None:
    prepared = ready(implementation, optimizer)
    results = [torch.full_like(prepared.inputs[n], torch.nan).double() for n in prepared.updated]
    for part in CODE.reference(prepared.parameters, prepared.inputs, max_bytes):
        assert results[part.output][part.index].isnan().all()
        results[part.output][part.index] = part.values
        written = CODE.slice_as_written(
            prepared.parameters, prepared.inputs, part.index, part.output
        )
        torch.testing.assert_close(written.double(), part.values, rtol=1e-5, atol=1e-7)
    inputs = {name: tensor.double() for name, tensor in prepared.inputs.items()}
    prepared.function(*inputs.values())
    for name, got in zip(prepared.updated, results, strict=True):
        torch.testing.assert_close(got, inputs[name], rtol=1e-12, atol=1e-12)


@EVERY_FORM
def test_planned_bytes_equal_the_hand_count(implementation: str) -> None:
    graph = chosen(implementation).captured.graph
    ops = [op.name for op in graph.ops]
    flat = ELEMENTS * 4
    # shrink 1, momentum 2, decay 1, variance 2, root, correct and eps 1 each, update 3.
    assert planned_bytes(graph, each_alone(ops)) == (12 * flat, 8 * flat)
    assert planned_bytes(graph, all_in_one(ops)) == (4 * flat, 3 * flat)


@pytest.mark.parametrize(
    "text",
    ["each", "all", "shrink+momentum+update+decay+variance+root+correct+eps",
     "momentum+decay+variance|root+correct+eps+update", "decay|variance+root+correct+eps"],
)  # fmt: skip
def test_pieces_with_ops_over_lists_update_in_place(text: str) -> None:
    prepared = ready("foreach")
    expected = torchs_step(prepared, "adamw")
    plan = parse_plan(text, [op.name for op in prepared.graph.ops], "adam-list")
    partition = partition_by(prepared, plan)
    plainly(partition)(*prepared.inputs.values())
    same(prepared.inputs.values(), expected.values())
    written = [node for piece in partition.pieces for node in piece.updated]
    assert len({node.name for node in written}) == 3 * N_TENSORS


SPEC = InputSpec(shape=(4,), dtype=torch.float32)


def own(function: ChainFunction, *names: OpName) -> Captured:
    return capture(function, {"x": SPEC, "y": SPEC}, names, source_file=__file__, device=CPU)


def over_both(name: str, *outputs: str, in_place: bool) -> OpName:
    first, *others = outputs
    return OpName(name=name, detail="", output=first, more_outputs=tuple(others), in_place=in_place)


def test_an_old_value_of_a_list_can_be_read_before_it_is_overwritten() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        old = x + y
        torch._foreach_mul_([x, y], 2.0)
        return old + x

    captured = own(
        function,
        over_both("old", "old", in_place=False),
        over_both("double", "x", "y", in_place=True),
        over_both("new", "new", in_place=False),
    )
    reads = {op.name: (op.reads, op.writes) for op in captured.graph.ops}
    assert reads["double"] == (("x", "y"), ("x", "y"))
    assert reads["new"] == (("old", "x"), ("new",))
    assert captured.updated == ("x", "y")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (over_both("double", "x", in_place=True), "double updates x by .* the code updates x y"),
        (over_both("double", "y", "x", in_place=True), "double updates y x .* updates x y"),
        (over_both("double", "z", "w", in_place=False), "double makes z w .* updates x y"),
    ],
)
def test_a_description_of_other_updates_is_refused(name: OpName, words: str) -> None:
    with pytest.raises(CaptureError, match=words):
        own(lambda x, y: torch._foreach_mul_([x, y], 2.0), name)


def test_a_list_that_is_partly_of_inputs_is_refused() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        made = y + 1
        torch._foreach_mul_([x, made], 2.0)
        return made

    names = [over_both(name, f"{name}_made", in_place=False) for name in ("made", "double")]
    with pytest.raises(CaptureError, match="in a way that no op names"):
        own(function, *names)


@pytest.mark.parametrize(
    ("implementation", "op"), [("for-loop", "momentum"), ("foreach", "momentum_0")]
)
def test_an_op_of_the_other_form_is_refused(implementation: str, op: str) -> None:
    chain, parameters = chosen(implementation).chain, chosen(implementation).parameters
    known = [each.name for each in chain.ops(parameters)]
    with pytest.raises(UsageError, match=f"adam-list has no op '{op}'"):
        parse_plan(f"{op}+update", known, chain.id)


def test_the_parameter_that_decides_is_named() -> None:
    chain = chosen("for-loop").chain
    with pytest.raises(UsageError, match="no op 'momentum' with implementation=for-loop"):
        chain.check_has(["momentum"], chosen("for-loop").parameters)
