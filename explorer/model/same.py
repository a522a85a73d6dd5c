"""A run or a graph as a key of what is kept about it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


@dataclass(frozen=True, eq=False, slots=True)
class Same(Generic[Kept]):
    """The same object as a key, not an equal one: comparing or hashing a run takes long.

    Attributes:
        it: A frozen record; it lives as long as the key.
    """

    it: Kept

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.it is self.it
