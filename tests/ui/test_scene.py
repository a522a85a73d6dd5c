import random
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QBuffer, QIODevice, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator

from explorer.model.dots import dots_at
from explorer.model.run import Run
from explorer.ui import theme as theme_module
from explorer.ui.painting import draw_text, elided
from explorer.ui.scene import canvas as canvas_module
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.draw import (
    SceneCache,
    SceneOptions,
    draw,
    layout_of,
    playback_of,
)
from explorer.ui.scene.head import format_dot, format_slowdown
from explorer.ui.scene.memory import size_lines
from explorer.ui.scene.words import describe
from explorer.ui.theme import DARK, LIGHT, Theme, load_fonts
from explorer.ui.words import run_title
from tests.fixtures_runs import (
    all_runs,
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    long_run,
    sdpa_attention,
)

SIZE = (823, 571)
PLAYABLE = [run for run in all_runs() if run.launches]


@pytest.fixture(autouse=True)
def fonts(qapp: object) -> None:
    load_fonts()


def picture(
    runs: tuple[Run, ...],
    t_us: float,
    *,
    theme: Theme = DARK,
    options: SceneOptions | None = None,
    cache: SceneCache | None = None,
    size: tuple[int, int] = SIZE,
    ratio: float = 1.0,
    offset: int = 0,
) -> QImage:
    image = QImage(
        round((size[0] + offset) * ratio),
        round((size[1] + offset) * ratio),
        QImage.Format.Format_ARGB32_Premultiplied,
    )
    image.setDevicePixelRatio(ratio)
    image.fill(QColor("magenta"))
    painter = QPainter(image)
    options = options or SceneOptions(slowdown=2000.0)
    draw(painter, QRectF(offset, offset, *size), runs, t_us, theme, options, cache)
    painter.end()
    return image


def moment(run: Run, share: float) -> float:
    return playback_of((run,)).total_us * share


def pixels(image: QImage) -> NDArray[np.int16]:
    """Channels of each pixel, ``[height, width, 4]``."""
    flat = np.frombuffer(image.constBits(), dtype=np.uint8)
    return flat.reshape(image.height(), image.width(), 4).astype(np.int16)


def color_at(image: QImage, x: float, y: float) -> QColor:
    return image.pixelColor(round(x), round(y))


def is_near(color: QColor, wanted: QColor, most: int = 12) -> bool:
    return all(
        abs(a - b) <= most
        for a, b in zip(color.getRgb()[:3], wanted.getRgb()[:3], strict=True)  # type: ignore[index]
    )


def count_near(image: QImage, rect: QRectF, wanted: QColor, most: int = 12) -> int:
    area = rect.toAlignedRect().intersected(image.rect())
    return sum(
        is_near(image.pixelColor(x, y), wanted, most)
        for x in range(area.left(), area.right() + 1)
        for y in range(area.top(), area.bottom() + 1)
    )


@pytest.mark.parametrize("run", all_runs(), ids=lambda run: run.id)
def test_any_order_of_moments_gives_the_same_pixels(run: Run) -> None:
    times = [moment(run, share) for share in (0.0, 0.11, 0.5, 0.731, 1.0)]
    forward = [picture((run,), t) for t in times]
    order = list(range(len(times)))
    random.Random(5).shuffle(order)
    cache = SceneCache()
    for k in order:
        assert picture((run,), times[k]) == forward[k]
        assert picture((run,), times[k], cache=cache) == forward[k]


@pytest.mark.parametrize("ratio", [1.0, 2.0])
@pytest.mark.parametrize("framed", [True, False])
def test_a_kept_picture_gives_the_same_pixels(ratio: float, framed: bool) -> None:
    run, cache = eager_attention(), SceneCache()
    options = SceneOptions(framed=framed, hovered=(0, 1))
    for share in (0.2, 0.21, 0.6, 0.2):
        t_us = moment(run, share)
        fresh = picture((run,), t_us, options=options, ratio=ratio)
        assert picture((run,), t_us, options=options, ratio=ratio, cache=cache) == fresh


def test_a_kept_picture_is_not_taken_for_another() -> None:
    run, cache = eager_attention(), SceneCache()
    t_us = moment(run, 0.2)
    dark = picture((run,), t_us, cache=cache)
    assert picture((run,), t_us, theme=LIGHT, cache=cache) != dark
    badged = SceneOptions(recorded=True, slowdown=2000.0)
    assert picture((run,), t_us, options=badged, cache=cache) == picture(
        (run,), t_us, options=badged
    )
    assert picture((run,), t_us, cache=cache) == dark


def test_the_scene_is_the_same_wherever_it_stands() -> None:
    run = compiled_attention()
    alone = pixels(picture((run,), moment(run, 0.4)))
    shifted = picture((run,), moment(run, 0.4), offset=30)
    moved = pixels(shifted.copy(30, 30, *SIZE))
    # A coordinate may round the other way, which shows in the shade of an edge.
    assert np.mean(np.abs(moved - alone).max(axis=2) > 24) < 0.002
    assert color_at(shifted, 10, 10) == QColor("magenta")


def test_nothing_is_left_unpainted() -> None:
    for runs in ((), (failed_run(),), (eager_attention(),), (eager_attention(), sdpa_attention())):
        image = picture(runs, 100.0)
        assert count_near(image, QRectF(0, 0, 40, 571), QColor("magenta"), 40) == 0


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_a_tensor_fills_as_it_is_written(theme: Theme) -> None:
    run = eager_attention()
    playback = playback_of((run,))
    slot = playback.lanes[0].slots[2]
    t_us = slot.start_us + 0.25 * (slot.end_us - slot.start_us)
    image = picture((run,), t_us, theme=theme)
    lane = layout_of(playback, QRectF(0, 0, *SIZE), t_us).lanes[0]
    masked = lane.boxes["masked"].block
    x = masked.left() + 0.12 * masked.width()
    fill = theme.color("tensor_made")
    assert is_near(color_at(image, x, masked.bottom() - 0.20 * masked.height()), fill, 20)
    empty = color_at(image, x, masked.bottom() - 0.30 * masked.height())
    assert is_near(empty, theme.color("sunken"))
    full = lane.boxes["scaled"].block
    assert is_near(color_at(image, full.left() + 8, full.top() + 8), fill, 20)


def test_what_is_freed_is_dimmed_and_what_is_not_there_yet_is_empty() -> None:
    run = eager_attention()
    playback = playback_of((run,))
    t_us = playback.lanes[0].slots[2].start_us + 10
    image = picture((run,), t_us)
    boxes = layout_of(playback, QRectF(0, 0, *SIZE), t_us).lanes[0].boxes
    corner = {
        name: color_at(image, boxes[name].block.left() + 8, boxes[name].block.top() + 8)
        for name in ("scores", "scaled", "probs")
    }
    assert is_near(corner["probs"], DARK.color("sunken"))
    assert is_near(corner["scaled"], DARK.color("tensor_made"), 20)
    assert corner["probs"].red() < corner["scores"].red() < corner["scaled"].red() // 2


def test_only_the_kernel_under_way_glows() -> None:
    run = eager_attention()
    playback = playback_of((run,))
    t_us = moment(run, 0.3)
    image = picture((run,), t_us)
    lane = layout_of(playback, QRectF(0, 0, *SIZE), t_us).lanes[0]
    green = DARK.color("compute")
    lit = [
        card.slot.index
        for card in lane.cards
        if is_near(color_at(image, card.rect.left(), card.rect.center().y()), green, 60)
    ]
    assert lit == [2]


def test_the_total_is_split_into_read_and_written() -> None:
    run = eager_attention()
    t_us = moment(run, 1.0)
    image = picture((run,), t_us)
    bar = layout_of(playback_of((run,)), QRectF(0, 0, *SIZE), t_us).lanes[0].bar
    row = QRectF(bar.left(), bar.center().y(), 0.6 * bar.width(), 1)
    read = count_near(image, row, DARK.color("read"))
    written = count_near(image, row, DARK.color("write"))
    assert read / written == pytest.approx(6.4951 / 5.9152, rel=0.03)


def test_dots_are_where_the_bytes_are() -> None:
    run = eager_attention()
    playback = playback_of((run,))
    t_us = moment(run, 0.3)
    image = picture((run,), t_us)
    lane = layout_of(playback, QRectF(0, 0, *SIZE), t_us).lanes[0]
    core = DARK.color("read").lighter(118)
    checked = 0
    for route in lane.routes:
        if route.slot.index != 2 or route.stream.tensor != "scaled":
            continue
        tags = [r.tag for r in lane.routes if r.tag is not None and r.slot.index == 2]
        for x, y in route.places(dots_at(route.slot, route.stream, playback, t_us).place).tolist():
            if not any(tag.adjusted(-4, -4, 4, 4).contains(x, y) for tag in tags):
                assert is_near(color_at(image, x - 0.5, y - 0.5), core, 30)
                checked += 1
    assert checked >= 5


def test_a_failed_run_says_so_in_the_place_of_kernels() -> None:
    image = picture((failed_run(),), 0.0)
    assert count_near(image, QRectF(250, 235, 320, 40), DARK.color("warning"), 40) > 60


def test_a_recorded_run_is_badged_in_its_headline() -> None:
    run = compiled_attention()
    plain, badged = (
        picture((run,), 0.0, options=SceneOptions(recorded=recorded)) for recorded in (False, True)
    )
    head = QRectF(400, 8, 423, 28)
    assert count_near(badged, head, DARK.color("write")) > 1500
    assert count_near(plain, head, DARK.color("write")) == 0


@pytest.mark.parametrize(
    ("size", "least_px"), [((799, 527), 13), ((626, 318), 12), ((483, 318), 12)], ids=str
)
def test_no_text_is_smaller_than_it_may_be(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], least_px: int
) -> None:
    """The scene's room in windows of 1440 x 900, 1280 x 720 and 1120 x 690."""
    sizes: list[int] = []

    def noted(
        size_px: float, weight: int = 400, mono: bool = False, tabular: bool = False
    ) -> QFont:
        made = theme_module.font(size_px, weight, mono, tabular)
        sizes.append(made.pixelSize())
        return made

    monkeypatch.setattr(canvas_module, "font", noted)
    for run in all_runs():
        for share in (0.0, 0.4, 1.0):
            picture((run,), moment(run, share), size=size)
    assert len(sizes) > 500
    assert min(sizes) >= least_px


@pytest.mark.parametrize(("width", "has_date"), [(823, True), (483, False)], ids=["wide", "narrow"])
def test_side_by_side_the_strategies_are_named_before_their_origin(
    monkeypatch: pytest.MonkeyPatch, width: int, has_date: bool
) -> None:
    written: set[str] = set()

    def noted(painter: QPainter, rect: QRectF, align: Qt.AlignmentFlag, text: str, face: QFont,
              color: QColor) -> float:  # fmt: skip
        if elided(text, face, rect.width()) == text:
            written.add(text)
        return draw_text(painter, rect, align, text, face, color)

    monkeypatch.setattr(canvas_module, "draw_text", noted)
    runs = (eager_attention(), compiled_attention())
    picture(runs, 0.0, size=(width, 400), options=SceneOptions(recorded=True))
    assert {"eager", "torch.compile", "RECORDED"} <= written
    assert any("2026-" in words for words in written) is has_date


@pytest.mark.parametrize("run", PLAYABLE, ids=lambda run: run.id)
def test_every_tensor_in_view_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    written: set[str] = set()

    def noted(painter: QPainter, rect: QRectF, align: Qt.AlignmentFlag, text: str, face: QFont,
              color: QColor) -> float:  # fmt: skip
        if elided(text, face, rect.width()) == text:
            written.add(text)
        return draw_text(painter, rect, align, text, face, color)

    monkeypatch.setattr(canvas_module, "draw_text", noted)
    for share in (0.0, 0.4, 1.0):
        written.clear()
        picture((run,), moment(run, share), size=(799, 527))
        layout = layout_of(playback_of((run,)), QRectF(0, 0, 799, 527), moment(run, share))
        for box in layout.lanes[0].boxes.values():
            name = box.tensor.name
            assert name in written or set(name.split(" ")) <= written, name


@pytest.mark.parametrize("size", [(840, 505), (1120, 680), (1904, 1010)], ids=str)
@pytest.mark.parametrize("run", all_runs(), ids=lambda run: run.id)
def test_every_size_is_painted(run: Run, size: tuple[int, int]) -> None:
    image = picture((run,), moment(run, 0.5), size=size)
    panel = DARK.color("panel")
    assert is_near(color_at(image, size[0] - 6, size[1] / 2), panel)
    assert is_near(color_at(image, size[0] / 2, size[1] - 4), panel)


def test_on_vector_devices_dots_stay_shapes() -> None:
    run = eager_attention()
    playback, t_us = playback_of((run,)), moment(run, 0.3)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(QSize(*SIZE))
    generator.setViewBox(QRectF(0, 0, *SIZE))
    painter = QPainter(generator)
    draw(painter, QRectF(0, 0, *SIZE), (run,), t_us, DARK)
    painter.end()
    text = bytes(buffer.data().data()).decode()
    slot = playback.lanes[0].slots[2]
    dots = sum(len(dots_at(slot, stream, playback, t_us).place) for stream in slot.traffic.streams)
    assert "<image" not in text
    # Two rings a dot, and three in the legend.
    assert text.count("<circle") + text.count("<ellipse") == 2 * dots + 3
    assert "Kernel 3" in text


@pytest.mark.parametrize("size", [(0, 0), (1, 1), (20, 900), (60, 40), (1500, 120), (120, 1500)])
def test_odd_sizes_do_no_harm(size: tuple[int, int]) -> None:
    for run in all_runs():
        picture((run,), moment(run, 0.4), size=size, offset=1)


def test_the_scene_in_words() -> None:
    run = eager_attention()
    assert describe(playback_of((run,)), moment(run, 0.3)) == (
        f"Attention, as in the textbook, {run_title(run)}, on NVIDIA H200. 1.60 ms of 5.35 ms: "
        "Kernel 3 of 6, mask, 55 % done. "
        "Read 2.30 GB and written 2.72 GB, 5.02 GB of 12.4 GB; memory in use 2.23 GB."
    )
    failed = failed_run()
    assert describe(playback_of((failed,)), 0.0).endswith(failed.error or "")
    idle = long_run()
    assert "idle for 8.67 µs" in describe(playback_of((idle,)), moment(idle, 0.335))
    named = replace(cpu_attention(), label="my run")
    assert "my run, on Two-core test processor" in describe(playback_of((named,)), 0.0)


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1869.7, "1,870×"), (2.0, "2×"), (80_000.0, "80,000×"), (245.6, "246×")],
)
def test_slow_motion_factors_are_rounded(factor: float, words: str) -> None:
    assert format_slowdown(factor) == words


def test_a_dot_is_a_round_number() -> None:
    assert format_dot(10_000_000) == "10 MB"
    assert format_dot(500) == "500 B"
    assert format_dot(2_000) == "2 kB"


def test_a_narrow_block_has_no_unit_without_its_number() -> None:
    image = QImage(10, 10, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    canvas = Canvas(painter, DARK, 1.0)
    tensor = replace(eager_attention().tensors[0], n_bytes=524_288)
    wide = canvas.text_width("524 kB", 13)
    assert size_lines(canvas, tensor, wide + 1) == ["524 kB"]
    assert size_lines(canvas, tensor, wide - 1) == ["524", "kB"]
    assert size_lines(canvas, tensor, canvas.text_width("kB", 13)) == []
    painter.end()
