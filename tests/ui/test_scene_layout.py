from itertools import combinations, pairwise

import pytest
from PySide6.QtCore import QPointF, QRectF

from explorer.model.playback import Playback
from explorer.model.run import Run
from explorer.model.streams import StreamKind, Way
from explorer.ui.scene.draw import layout_of, playback_of
from explorer.ui.scene.hit import hit
from explorer.ui.scene.layout import Lane, Layout
from explorer.ui.theme import load_fonts
from tests.fixtures_runs import (
    all_runs,
    compiled_attention,
    cpu_attention,
    eager_attention,
    long_run,
    sdpa_attention,
)

SIZES = [(823, 571), (840, 505), (1120, 680), (1904, 1010), (420, 252)]
PLAYABLE = [run for run in all_runs() if run.launches]


@pytest.fixture(autouse=True)
def fonts(qapp: object) -> None:
    load_fonts()


def at(run: Run, share: float, size: tuple[int, int] = (823, 571)) -> tuple[Playback, Layout, Lane]:
    playback = playback_of((run,))
    layout = layout_of(playback, QRectF(0, 0, *size), playback.total_us * share)
    return playback, layout, layout.lanes[0]


@pytest.mark.parametrize("run", PLAYABLE, ids=lambda run: run.id)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_everything_lies_inside_and_apart(run: Run, size: tuple[int, int]) -> None:
    _, layout, lane = at(run, 0.4, size)
    whole = QRectF(0, 0, *size)
    for rect in (lane.band, lane.l2, lane.strip, lane.bar, *(c.rect for c in lane.cards)):
        assert whole.contains(rect)
    for one, other in combinations([card.rect for card in lane.cards], 2):
        assert not one.intersects(other)
    blocks = [box.block for box in lane.boxes.values()]
    assert all(lane.band.contains(block) for block in blocks)
    for one, other in combinations(blocks, 2):
        assert not one.intersects(other)
    assert lane.band.bottom() < lane.l2.top() < lane.l2.bottom() < lane.cards[0].rect.top()
    for card in lane.cards:
        assert card.rect.contains(card.chip)
        assert all(card.chip.contains(op.rect) for op in card.ops)
    for route in lane.routes:
        assert route.tag is None or whole.contains(route.tag)
    unit = min(size[0] / 780, size[1] / 505)
    assert layout.u == pytest.approx(unit) if unit >= 0.89 else unit < layout.u <= 0.89
    assert lane.others is None or lane.other_lives, "a tile for no tensor"


def test_without_its_own_face_it_fills_a_panel() -> None:
    playback = playback_of((eager_attention(),))
    bare = layout_of(playback, QRectF(0, 0, 756, 472), 0.0, framed=False)
    assert bare.u == 1.0
    assert bare.lanes[0].band.left() == 4.0
    assert bare.details.top() == 0.0
    both = playback_of((eager_attention(), sdpa_attention()))
    # Beside each other, runs are named even there.
    assert layout_of(both, QRectF(0, 0, 756, 505), 0.0, framed=False).details.top() == 33.0


@pytest.mark.parametrize("run", PLAYABLE, ids=lambda run: run.id)
def test_areas_are_in_proportion_to_bytes(run: Run) -> None:
    _, layout, lane = at(run, 0.4)
    least = 8.0 * layout.u
    per_byte = max(
        box.block.width() * box.block.height() / box.tensor.n_bytes
        for box in lane.boxes.values()
        if box.block.width() > least + 0.01
    )
    for box in lane.boxes.values():
        area = box.block.width() * box.block.height()
        if box.block.width() > least + 0.01:
            assert area == pytest.approx(per_byte * box.tensor.n_bytes, rel=1e-6)
        else:
            assert area >= per_byte * box.tensor.n_bytes


def test_small_tensors_of_eager_attention_are_squares_with_names_beside() -> None:
    _, _, lane = at(eager_attention(), 0.0)
    squares = {box.tensor.name for box in lane.boxes.values() if box.is_square}
    assert squares == {"q", "k", "v", "mask", "out"}
    for box in lane.boxes.values():
        if box.label is not None:
            assert box.block.width() == pytest.approx(box.block.height())
            assert box.label.left() > box.block.right()


def test_tensors_alike_are_all_squares_or_all_blocks() -> None:
    for run in PLAYABLE:
        boxes = at(run, 0.4)[2].boxes.values()
        kinds: dict[int, set[bool]] = {}
        for box in boxes:
            kinds.setdefault(box.tensor.n_bytes, set()).add(box.is_square)
        assert all(len(kind) == 1 for kind in kinds.values()), run.id


def test_two_lanes_share_one_area_scale() -> None:
    playback = playback_of((eager_attention(), sdpa_attention()))
    layout = layout_of(playback, QRectF(0, 0, 1400, 700), 100.0)
    eager, sdpa = layout.lanes
    scores = eager.boxes["scores"].block
    per_byte = scores.width() * scores.height() / eager.boxes["scores"].tensor.n_bytes
    mask = sdpa.boxes["mask"].block
    assert mask.width() * mask.height() == pytest.approx(per_byte * 4096 * 4096 * 2, rel=1e-6)


@pytest.mark.parametrize("run", PLAYABLE, ids=lambda run: run.id)
def test_ways_lead_from_memory_to_the_kernel_and_back(run: Run) -> None:
    _, layout, lane = at(run, 0.4)
    cards = {card.slot.index: card.rect for card in lane.cards}
    assert len(lane.routes) == sum(len(card.slot.traffic.streams) for card in lane.cards)
    for route in lane.routes:
        card = cards[route.slot.index]
        order = 1 if route.stream.way is Way.READ else -1
        memory, kernel = (QPointF(*route.points[k]) for k in (0, -1)[::order])
        assert card.left() < kernel.x() < card.right()
        assert kernel.y() == pytest.approx(card.top(), abs=3 * layout.u)
        if route.stream.kind is StreamKind.L2:
            assert lane.l2.contains(memory)
        elif route.stream.tensor is None:
            assert memory.y() == pytest.approx(lane.band.bottom())
        else:
            near = lane.boxes[route.stream.tensor].block.adjusted(-4, -4, 4, 4)
            assert near.contains(memory)
        assert route.reached[0] == 0
        assert route.reached[-1] == 1


@pytest.mark.parametrize("run", PLAYABLE, ids=lambda run: run.id)
@pytest.mark.parametrize("size", SIZES[:4], ids=str)
def test_tags_of_a_launch_do_not_hide_each_other(run: Run, size: tuple[int, int]) -> None:
    _, layout, lane = at(run, 0.4, size)
    for card in lane.cards:
        tags = [
            route.tag
            for route in lane.routes
            if route.slot is card.slot and route.tag and route.stream.is_memory_traffic
        ]
        for one, other in combinations(tags, 2):
            overlap = one.intersected(other)
            assert overlap.width() * overlap.height() < 0.12 * one.width() * one.height()
    assert layout.u > 0


def test_six_kernels_are_all_in_view() -> None:
    for size in ((840, 505), (823, 571)):
        _, _, lane = at(eager_attention(), 0.9, size)
        assert len(lane.cards) == 6
        assert lane.page.is_whole
        assert lane.others is None


def test_fifty_kernels_turn_pages_round_the_one_under_way() -> None:
    playback = playback_of((long_run(),))
    seen: list[int] = []
    for slot in playback.lanes[0].slots:
        layout = layout_of(playback, QRectF(0, 0, 840, 505), slot.start_us)
        lane = layout.lanes[0]
        assert lane.page.first <= slot.index < lane.page.end
        assert 5 <= len(lane.cards) <= 8
        assert min(card.rect.width() for card in lane.cards) >= 86 * layout.u - 0.01
        assert len(lane.boxes) + len(lane.other_lives) == 51
        seen.append(lane.page.first)
    assert seen == sorted(seen)
    assert len(set(seen)) == 7


def test_a_fused_kernel_has_a_wider_card_with_all_its_ops_in_order() -> None:
    _, _, lane = at(compiled_attention(), 0.5)
    fused = lane.cards[2]
    assert [op.name for op in fused.ops] == ["scale", "mask", "softmax", "dropout"]
    assert fused.hidden_ops == 0
    for before, after in pairwise(fused.ops):
        assert before.rect.right() < after.rect.left()
    assert all(fused.rect.width() > 2 * card.rect.width() for card in lane.cards if card != fused)


def test_in_a_low_scene_the_ops_move_together_before_one_is_left_out() -> None:
    _, _, lane = at(compiled_attention(), 0.5, (600, 420))
    [fused] = [card for card in lane.cards if len(card.slot.launch.ops) == 4]
    assert fused.hidden_ops == 0
    gaps = [b.rect.left() - a.rect.right() for a, b in pairwise(fused.ops)]
    assert len({op.rect.top() for op in fused.ops}) == 1
    assert all(gap > 0 for gap in gaps)


def test_a_launch_without_ops_shows_its_title() -> None:
    _, _, lane = at(compiled_attention(), 0.5)
    assert [op.name for op in lane.cards[0].ops] == ["seed"]


def test_points_find_kernels_tensors_tags_and_the_cache() -> None:
    _, layout, lane = at(eager_attention(), 0.3)
    card = lane.cards[2]
    found = hit(layout, card.rect.center())
    assert found is not None
    assert found.is_kernel
    assert found.slot is card.slot
    found = hit(layout, lane.boxes["mask"].block.center())
    assert found is not None
    assert found.tensor is not None
    assert found.tensor.name == "mask"
    route = next(r for r in lane.routes if r.stream.kind is StreamKind.REREAD and r.tag)
    assert route.tag is not None
    found = hit(layout, route.tag.center(), frozenset({2}))
    assert found is not None
    assert found.stream is route.stream
    assert not found.is_kernel
    found = hit(layout, QPointF(lane.l2.left() + 4, lane.l2.center().y()))
    assert found is not None
    assert found.is_cache
    found = hit(layout, lane.band.bottomRight() - QPointF(3, 3))
    assert found is not None
    assert found.is_memory
    assert hit(layout, QPointF(1, 1)) is None


def test_loop_nests_leave_the_ops_readable() -> None:
    _, layout, lane = at(cpu_attention(), 0.5)
    fused = lane.cards[1]
    assert len(fused.ops) == 4
    assert all(op.rect.height() >= 20 * layout.u for op in fused.ops)
