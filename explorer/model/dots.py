"""Dots: where the fixed parcels of a stream's bytes are at a moment."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.model.playback import Playback, Slot
from explorer.model.streams import Stream

MOST_TRAVEL_OF_LAUNCH = 0.4
"""A dot of a short launch is under way for at most this share of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """The dots of one stream at one moment.

    Attributes:
        place: Where each dot under way is, 0 at its source, 1 at its goal; ``[n]``.
        fill: How much of a dot's bytes each carries, 1 but for a stream's last dot; ``[n]``.
        arrived: How many have arrived.
        total: How many the stream has.
        travel_share: The share of the launch that a dot is under way.
    """

    place: NDArray[np.float64]
    fill: NDArray[np.float64]
    arrived: int
    total: int
    travel_share: float


def dots_at(slot: Slot, stream: Stream, playback: Playback, t_us: float) -> Dots:
    """The dots of a stream at a moment.

    Dot ``i`` arrives when the stream has delivered its bytes, so arrivals are the counter's
    ticks. It sets out ``travel_us`` earlier, but not before the launch starts: the first dots
    leave together and spread out until the stream is even.
    """
    dot_bytes, n_bytes = playback.dot_bytes, stream.n_bytes
    total = -(-n_bytes // dot_bytes)
    length_us = slot.end_us - slot.start_us
    travel_us = min(playback.travel_us, MOST_TRAVEL_OF_LAUNCH * length_us)
    ends = np.minimum(np.arange(1, total + 1, dtype=np.float64) * dot_bytes, n_bytes)
    arrival = slot.start_us + ends / n_bytes * length_us
    departure = np.maximum(slot.start_us, arrival - travel_us)
    under_way = (departure < t_us) & (t_us < arrival)
    fill = np.ones(total)
    fill[-1] = (n_bytes - (total - 1) * dot_bytes) / dot_bytes
    left, reached = departure[under_way], arrival[under_way]
    return Dots(
        place=(t_us - left) / (reached - left),
        fill=fill[under_way],
        arrived=int(np.count_nonzero(arrival <= t_us)),
        total=total,
        travel_share=travel_us / length_us,
    )
