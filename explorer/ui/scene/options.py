"""What a picture of the scene says beside the runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneOptions:
    """What a picture says beside the runs.

    Attributes:
        recorded: The runs were made elsewhere or earlier: badge them with device and date.
        slowdown: How much slower than measured they are shown; None for a still picture.
        hovered: Lane and launch under the pointer.
        framed: Draw the panel's face and the run's name; without it the scene is to stand in a
            panel that does both, the badge included.
    """

    recorded: bool = False
    slowdown: float | None = None
    hovered: tuple[int, int] | None = None
    framed: bool = True
