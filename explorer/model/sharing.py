"""One copy of what many runs have alike: a session keeps a thousand of them."""

from collections.abc import Hashable
from dataclasses import replace
from typing import TypeVar

from explorer.model.run import Launch, Run

Part = TypeVar("Part", bound=Hashable)


class Sharing:
    """Gives equal parts of runs the same memory; runs stay what they are.

    Every run of a setting has the same graph, and every run of a strategy in it the same tensors,
    kernels and code. What is kept about a graph is then found for all of them.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Hashable] = {}

    def shared(self, run: Run) -> Run:
        """The run, of parts that were seen before where there are equal ones."""
        # A break is equal to one of which torch said more.
        graph = run.graph if run.graph.breaks else self._one(run.graph)
        cost = run.compile
        return replace(
            run,
            graph=graph,
            compile=cost and replace(cost, refusals=self._one(cost.refusals)),
            tensors=self._one(run.tensors),
            launches=tuple(map(self._launch, run.launches)),
            code={key: self._one(text) for key, text in run.code.items()},
        )

    def _launch(self, launch: Launch) -> Launch:
        return replace(
            launch,
            kernel=self._one(launch.kernel),
            title=self._one(launch.title),
            ops=self._one(launch.ops),
            accesses=self._one(launch.accesses),
            stays_on_chip=self._one(launch.stays_on_chip),
            loop_nests=self._one(launch.loop_nests),
            grid=self._one(launch.grid),
            block=self._one(launch.block),
            code=self._one(launch.code),
            bytes_read=self._one(launch.bytes_read),
            bytes_written=self._one(launch.bytes_written),
        )

    def _one(self, part: Part) -> Part:
        return self._known.setdefault(part, part)  # type: ignore[return-value] # an equal one
