"""Tells tensors apart that lie in one piece of memory, as the weights of an RNN do."""

from bisect import bisect_right, insort


class Regions:
    """Where in each piece of memory the tensors that are known in it begin.

    A piece of memory is told by its own address, or by whatever else tells it from others.
    """

    def __init__(self) -> None:
        self._begins: dict[int, list[int]] = {}

    def add(self, memory: int, address: int) -> int:
        """Note that a tensor begins at that address; gives what tells its region from others."""
        begins = self._begins.setdefault(memory, [])
        if address not in begins:
            insort(begins, address)
        return address

    def of(self, memory: int, address: int) -> int:
        """The region in which an address lies: the memory itself if no tensor is known in it."""
        begins = self._begins.get(memory)
        return memory if begins is None else begins[max(0, bisect_right(begins, address) - 1)]
