"""What the roofline shows, without a plot: marks, roofs, ranges, and all of it in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.model.comparison import find_baseline
from explorer.model.device import Ceilings
from explorer.model.roofline import Roof, RooflinePoint, roofline_point, roofs
from explorer.model.run import Run
from explorer.model.units import format_flops_rate, format_rate, three_digits
from explorer.ui.run_names import title_among
from explorer.ui.words import run_color_name

FLOPS_UNITS = ((1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One run on the plot.

    Attributes:
        place: In the list of runs.
        title: What it is called.
        color: Name of its theme colour.
        point: Where it lies.
        on_path: The selected run or its baseline, which a dotted line connects.
    """

    place: int
    title: str
    color: str
    point: RooflinePoint
    on_path: bool = True

    @property
    def x(self) -> float:
        """Where it lies across, in log10."""
        return math.log10(self.point.flops_per_byte)

    @property
    def y(self) -> float:
        """Where it lies up, in log10."""
        return math.log10(self.point.flops_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePicture:
    """Everything the plot shows.

    Attributes:
        ceilings: Measured ceilings of the device.
        roofs: Highest first.
        marks: The runs.
        selected: Place of the selected run; its mark is larger.
        memory_name: HBM or DRAM.
    """

    ceilings: Ceilings
    roofs: tuple[Roof, ...]
    marks: tuple[Mark, ...]
    selected: int
    memory_name: str


def flops_unit(picture: RooflinePicture) -> tuple[float, str]:
    """The unit of the vertical axis: the one that suits the highest roof."""
    highest = max((roof.flops_per_s for roof in picture.roofs), default=0.0)
    return next((unit for unit in FLOPS_UNITS if highest >= unit[0]), FLOPS_UNITS[-1])


def bounds(picture: RooflinePicture) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ranges of both axes in log10: roofs, ridges and marks with some air round them."""
    x = [roof.ridge_flops_per_byte for roof in picture.roofs]
    y = [roof.flops_per_s for roof in picture.roofs]
    x += [mark.point.flops_per_byte for mark in picture.marks]
    y += [mark.point.flops_per_s for mark in picture.marks]
    left, right = math.log10(min(x)) - 0.45, math.log10(max(x)) + 0.55
    slope = math.log10(picture.ceilings.memory_bytes_per_s)
    low = min(math.log10(min(y)) - 0.5, left + slope)
    return (left, right), (low, math.log10(max(y)) + 0.3)


def picture_of(runs: Sequence[Run], shown: int) -> RooflinePicture:
    """The picture under the measured ceilings of ``runs[shown]``'s device.

    Runs of another device have other roofs and are left out, as are runs without a point.
    """
    run = runs[shown]
    ceilings = run.device.ceilings
    assert ceilings is not None, "without ceilings there is a sentence in its place"
    base = find_baseline(run, runs)
    return RooflinePicture(
        ceilings=ceilings,
        roofs=roofs(ceilings, run.chain.dtype),
        marks=tuple(
            Mark(
                place=place,
                title=title_among(each, runs),
                color=run_color_name(each),
                point=point,
                on_path=each is run or each is base,
            )
            for place, each in enumerate(runs)
            if each.device.name == run.device.name and (point := roofline_point(each))
        ),
        selected=shown,
        memory_name=run.device.memory_name,
    )


def ridge_words(roof: Roof) -> str:
    """A ridge point in words."""
    return f"ridge point, {roof.dtype}: {three_digits(roof.ridge_flops_per_byte)} FLOP per byte"


def mark_words(mark: Mark) -> str:
    """A mark in words, for its tooltip and the screen reader."""
    point = mark.point
    return (
        f"{mark.title}: {format_flops_rate(point.flops_per_s)} at "
        f"{three_digits(point.flops_per_byte)} FLOP per byte, bytes {point.pedigree.value}"
    )


def picture_words(picture: RooflinePicture, titles: Sequence[str]) -> str:
    """The whole plot in words."""
    roofs = ", ".join(
        f"{format_flops_rate(roof.flops_per_s)} {roof.dtype} from "
        f"{three_digits(roof.ridge_flops_per_byte)} FLOP per byte on"
        for roof in picture.roofs
    )
    head = f"Ceilings: {format_rate(picture.ceilings.memory_bytes_per_s)} memory; {roofs}"
    return "; ".join([head, *map(mark_words, picture.marks), *titles])
