"""What a plan reads and writes, against counts by hand."""

from explorer.model.fusion import each_alone, parse_plan
from explorer.model.opgraph import OpGraph
from explorer.model.planned import planned_bytes, planned_kernels
from tests.model.graphs import ADAM, RMS_NORM, SOFTMAX_CHAIN


def planned(graph: OpGraph, text: str) -> tuple[int, int]:
    return planned_bytes(graph, parse_plan(text, [op.name for op in graph.ops], "chain"))


def test_a_chain_in_a_row() -> None:
    assert planned(SOFTMAX_CHAIN, "each") == (500, 400)
    assert planned(SOFTMAX_CHAIN, "scale+mask") == (400, 300)
    assert planned(SOFTMAX_CHAIN, "all") == (200, 100)
    [kernel] = planned_kernels(
        SOFTMAX_CHAIN, parse_plan("all", ("scale", "mask", "softmax", "dropout"), "c")
    )
    assert kernel.stays_on_chip == ("scaled", "masked", "probs")


def test_a_value_that_others_need_is_written_once_and_read_by_each() -> None:
    # x and res; h; h², var; var, r; h and r, n; n and w, y.
    assert planned(RMS_NORM, "each") == (200 + 100 + 100 + 1 + 101 + 110, 100 + 100 + 1 + 1 + 200)
    # h is an output, so it is written all the same, and read again by nobody.
    assert planned(RMS_NORM, "all") == (210, 200)
    assert planned(RMS_NORM, "residual+square") == (200 + 100 + 1 + 101 + 110, 402)


def test_what_is_updated_in_place_is_read_once_and_written_once() -> None:
    assert planned(ADAM, "each") == (200 + 100 + 200 + 100 + 300, 500)
    assert planned(ADAM, "all") == (400, 300)
    assert planned(ADAM, "decay+variance+root") == (200 + 200 + 300, 100 + 200 + 100)
    for kernel in planned_kernels(ADAM, each_alone([op.name for op in ADAM.ops])):
        assert not kernel.stays_on_chip
