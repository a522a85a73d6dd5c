"""What a picture of the scene says beside the runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneOptions:
    """What a picture says beside the runs.

    Attributes:
        recorded: The runs were made elsewhere or earlier: badge them with device and date. Either
            for all, or one by one in the order of the lanes.
        slowdown: How much slower than measured they are shown; None for a still picture.
        hovered: Lane and launch under the pointer.
        framed: Draw the panel's face and the run's name; without it the scene is to stand in a
            panel that does both, the badge included.
    """

    recorded: bool | tuple[bool, ...] = False
    slowdown: float | None = None
    hovered: tuple[int, int] | None = None
    framed: bool = True

    def is_badged(self, lane: int) -> bool:
        """Whether the run in a lane is badged in the scene's own headline."""
        if not self.framed:
            return False
        if isinstance(self.recorded, bool):
            return self.recorded
        return lane < len(self.recorded) and self.recorded[lane]
