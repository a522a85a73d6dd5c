"""What the op graph says of a link, counted by hand for the attention chain."""

from dataclasses import replace

from explorer.model.fusion import parse_plan
from explorer.model.opgraph import OpGraph
from explorer.model.run import Access, Bytes, Pedigree
from explorer.ui.chain_picture import chain_picture
from explorer.ui.op_links import (
    ChainPicture,
    LinkState,
    format_flops,
    link_sentence,
    link_text,
)
from tests.fixtures_runs import (
    GPU_GRAPH,
    compiled_attention,
    eager_attention,
    long_run,
    sdpa_attention,
)
from tests.model.graphs import ADAM, RMS_NORM

SQUARE = 2 * 16 * 4096 * 4096 * 2
"""Bytes of the scores in bf16."""


def test_before_a_run_each_op_is_planned_as_its_own_kernel() -> None:
    picture = chain_picture(GPU_GRAPH, None)
    assert picture.pedigree is Pedigree.PLANNED
    assert picture.groups == ()
    assert [link.n_bytes for link in picture.links] == [2 * SQUARE] * 5
    assert all(link.state is LinkState.THROUGH_MEMORY for link in picture.links)
    assert all(row.launches == () for row in picture.rows)


def test_eager_goes_through_memory_everywhere() -> None:
    picture = chain_picture(GPU_GRAPH, eager_attention())
    assert picture.pedigree is Pedigree.MODELLED
    assert [link.state for link in picture.links] == [LinkState.THROUGH_MEMORY] * 5
    assert picture.links[0].bytes_written == SQUARE
    assert picture.links[0].bytes_read == SQUARE
    assert link_text(picture.links[0], "HBM") == "via HBM · 2.15 GB"
    assert "modelled" in link_sentence(picture.links[0], "HBM")


def test_compile_fuses_the_four_in_the_middle() -> None:
    picture = chain_picture(GPU_GRAPH, compiled_attention())
    assert picture.groups == ((1, 4),)
    states = [link.state for link in picture.links]
    memory, chip = LinkState.THROUGH_MEMORY, LinkState.ON_CHIP
    assert states == [memory, chip, chip, chip, memory]
    assert link_text(picture.links[1], "HBM") == "fused · 0 B"
    assert "stays on chip" in link_sentence(picture.links[1], "HBM")


def test_one_kernel_for_all() -> None:
    picture = chain_picture(GPU_GRAPH, sdpa_attention())
    assert picture.groups == ((0, 5),)
    assert all(link.n_bytes == 0 for link in picture.links)


def test_side_inputs_are_what_the_op_above_did_not_make() -> None:
    rows = chain_picture(GPU_GRAPH, eager_attention()).rows
    named = {row.op.name: [side.name for side in row.side_inputs] for row in rows}
    assert named == {
        "qk": ["q", "k"], "scale": [], "mask": ["mask"], "softmax": [], "dropout": [],
        "pv": ["v"],
    }  # fmt: skip


def test_a_value_that_a_fused_kernel_writes_all_the_same() -> None:
    run = compiled_attention()
    launches = list(run.launches)
    kept = Access(tensor="probs", bytes_written=SQUARE)
    launches[2] = replace(launches[2], accesses=(*launches[2].accesses, kept))
    picture = chain_picture(GPU_GRAPH, replace(run, launches=tuple(launches)))
    link = picture.links[3]
    assert link.state is LinkState.KEPT
    assert link.n_bytes == SQUARE
    assert link_text(link, "HBM") == "fused · 1.07 GB"


def test_counters_that_disagree_both_ways_put_it_in_doubt() -> None:
    run = compiled_attention()
    launches = list(run.launches)
    modelled = launches[2].bytes_written.modelled or 0
    more = Bytes(modelled=modelled, counted=modelled + SQUARE)
    launches[2] = replace(launches[2], bytes_written=more)
    picture = chain_picture(GPU_GRAPH, replace(run, launches=tuple(launches)))
    assert [link.state for link in picture.links[1:4]] == [LinkState.DOUBTED] * 3
    assert "counters" in link_sentence(picture.links[1], "HBM")


def test_reading_more_alone_is_no_spill() -> None:
    launch = compiled_attention().launches[2]
    assert (launch.bytes_read.counted or 0) > (launch.bytes_read.modelled or 0) + SQUARE // 2
    picture = chain_picture(GPU_GRAPH, compiled_attention())
    assert picture.links[1].state is LinkState.ON_CHIP


def test_launches_that_name_no_ops_say_nothing() -> None:
    run = eager_attention()
    launches = tuple(replace(launch, ops=()) for launch in run.launches)
    picture = chain_picture(GPU_GRAPH, replace(run, launches=launches))
    assert {link.state for link in picture.links} == {LinkState.UNKNOWN}
    assert "do not say" in link_sentence(picture.links[0], "HBM")


def test_an_op_of_several_launches_passes_what_any_of_them_wrote() -> None:
    run = eager_attention()
    dropout = run.launches[4]
    noise = replace(
        dropout, accesses=(Access(tensor="keep", bytes_written=SQUARE // 2),)
    )  # fmt: skip
    product = replace(dropout, accesses=tuple(a for a in dropout.accesses if a.tensor != "keep"))
    launches = (*run.launches[:4], noise, product, run.launches[5])
    picture = chain_picture(GPU_GRAPH, replace(run, launches=launches))
    assert picture.rows[4].launches == (4, 5)
    assert picture.groups == ()
    assert picture.links[3].bytes_read == SQUARE
    assert picture.links[4].n_bytes == 2 * SQUARE


def test_a_value_that_the_strategy_does_not_make_is_rewritten() -> None:
    run = eager_attention()
    scale, mask = run.launches[1:3]
    launches = (
        run.launches[0],
        replace(scale, accesses=(Access(tensor="q", bytes_read=1, bytes_written=1),)),
        replace(mask, accesses=tuple(a for a in mask.accesses if a.tensor != "scaled")),
        *run.launches[3:],
    )
    link = chain_picture(GPU_GRAPH, replace(run, launches=launches)).links[1]
    assert link.state is LinkState.REWRITTEN
    assert link_text(link, "HBM") == "rewritten"
    assert "another way" in link_sentence(link, "HBM")


def test_a_long_chain_has_a_link_between_all_neighbours() -> None:
    run = long_run(50)
    picture = chain_picture(run.graph, run)
    assert len(picture.links) == 49
    assert {link.n_bytes for link in picture.links} == {2 * 64 * 4096 * 2}


def test_flops_as_people_read_them() -> None:
    assert format_flops(68_719_476_736) == "68.7 GFLOP"
    assert format_flops(512) == "512 FLOP"


def planned(graph: OpGraph, text: str) -> ChainPicture:
    """The picture of a plan."""
    return chain_picture(graph, None, parse_plan(text, [op.name for op in graph.ops], "it"))


def test_a_planned_group_passes_its_values_on_on_chip() -> None:
    picture = planned(GPU_GRAPH, "scale+mask|softmax+dropout")
    states = [link.state for link in picture.links]
    memory, chip = LinkState.THROUGH_MEMORY, LinkState.ON_CHIP
    assert states == [memory, chip, memory, chip, memory]
    assert picture.groups == ((1, 2), (3, 4))
    assert [link.n_bytes for link in picture.links] == [2 * SQUARE, 0, 2 * SQUARE, 0, 2 * SQUARE]


def test_data_that_goes_past_an_op_has_a_link_at_the_side() -> None:
    picture = planned(RMS_NORM, "residual+square")
    (side,) = picture.side_links
    assert (side.above, side.below, side.lane) == (0, 4, 0)
    assert (side.link.first, side.link.second) == ("residual", "normalize")
    # h is written once, for it is a result too, and read back by normalize.
    assert side.link.n_bytes == 200
    assert picture.links[0].state is LinkState.KEPT
    assert picture.links[0].n_bytes == 100
    named = {row.op.name: [each.name for each in row.side_inputs] for row in picture.rows}
    assert named["normalize"] == []
    assert named["weight"] == ["w"]


def test_a_link_past_other_ops_inside_one_kernel_costs_what_is_kept() -> None:
    (side,) = planned(RMS_NORM, "all").side_links
    assert side.link.state is LinkState.KEPT
    assert side.link.n_bytes == 100


def test_what_is_updated_in_place_twice_is_written_once() -> None:
    apart = planned(ADAM, "each")
    assert apart.links[1].n_bytes == 200
    together = planned(ADAM, "decay+variance+root")
    assert together.links[1].state is LinkState.ON_CHIP
    # root reads the v that is written for good.
    assert together.links[2].state is LinkState.KEPT
    assert {side.name for side in together.outputs} == {"m", "v", "p"}


def test_neighbours_without_data_say_what_both_read() -> None:
    graph = planned(ADAM, "each")
    assert graph.links[0].state is LinkState.NO_DATA
    assert link_text(graph.links[0], "HBM") == "no data"
    shared = replace(ADAM, ops=(ADAM.ops[0], ADAM.ops[2]))
    (link,) = planned(shared, "each").links
    assert link_text(link, "HBM") == "both read g"
    assert "100 B each" in link_sentence(link, "HBM")
    (link,) = planned(shared, "all").links
    assert link.state is LinkState.TOGETHER
    assert link_text(link, "HBM") == "fused · g read once"
    assert [side.n_bytes for side in planned(shared, "all").rows[1].side_inputs] == [100, 0]


def test_a_group_of_ops_apart_is_drawn_in_stretches() -> None:
    picture = planned(ADAM, "momentum+variance")
    assert picture.groups == ((0, 0), (2, 2))
    assert picture.bridges == ((0, 2),)


def test_links_that_overlap_lie_in_lanes_of_their_own() -> None:
    lanes = {(s.link.first, s.link.second): s.lane for s in planned(ADAM, "each").side_links}
    assert lanes == {("momentum", "update"): 0}
    tangled = replace(
        RMS_NORM, ops=(*RMS_NORM.ops[:5], replace(RMS_NORM.ops[5], reads=("n", "h2")))
    )
    found = {(s.above, s.below): s.lane for s in planned(tangled, "each").side_links}
    assert found == {(0, 4): 0, (1, 5): 1}
