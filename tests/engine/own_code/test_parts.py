"""An op that autograd runs in parts: each part has a name of its own."""

from tests.engine.own_code.helpers import MODULES, captured

CHAIN = f"{MODULES / 'in_plain_torch.py'}:dropping_attention"
INPUTS = "q=fp32[1,2,8,4] k=fp32[1,2,8,4] v=fp32[1,2,8,4]"


def test_the_parts_of_an_op_have_names_and_results_of_their_own() -> None:
    [whole] = captured(CHAIN, INPUTS).captured.graph.ops
    ops = captured(CHAIN, INPUTS, backward=True).captured.graph.ops
    forward = [op for op in ops if not op.is_backward]
    assert len(forward) > 1
    assert [op.name for op in forward] == [
        whole.name, *(f"{whole.name}{part}" for part in range(2, len(forward) + 1))
    ]  # fmt: skip
    assert len({op.name for op in ops}) == len(ops)
    written = [tensor for op in ops for tensor in op.writes]
    assert len(set(written)) == len(written)
