"""The part of a ``Run`` that is known before anything ran."""

import dataclasses
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from explorer.engine.prepare import ChosenChain
from explorer.engine.strategies import Strategy
from explorer.model.device import Device, Versions
from explorer.model.run import ChainInfo, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMaker:
    """Makes the runs of one request.

    Attributes:
        chosen: The captured chain.
        device: Where it runs, ceilings included.
        versions: Of everything.
        seed: Of the inputs and of the random ops.
        warnings: What every run should say.
        swept: The parameter that is swept, if any.
    """

    chosen: ChosenChain
    device: Device
    versions: Versions
    seed: int
    warnings: tuple[str, ...] = ()
    swept: str | None = None

    def blank(self, strategy: Strategy, backend: str | None = None, plan: str | None = None) -> Run:
        """A run with nothing measured.

        Args:
            strategy: How it is to run.
            backend: What really ran, where the strategy leaves it open.
            plan: Every group of a fusion plan; where it is left out, as far as known beforehand.
        """
        parameters = self.chosen.parameters
        if plan is None and strategy.plan_of is not None:
            known = strategy.plan_of(self.chosen.captured.graph)
            plan = None if known is None else known.text
        return Run(
            id=uuid.uuid4().hex,
            chain=ChainInfo(
                name=self.chosen.chain.id,
                title=self.chosen.chain.title,
                parameters=parameters,
                dtype=self.chosen.dtype,
                direction=self.chosen.subject.direction,
                own=self.chosen.subject.own,
                source=None if self.chosen.own is None else self.chosen.own.source,
            ),
            strategy=strategy.info(backend, plan),
            device=self.device,
            versions=self.versions,
            seed=self.seed,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            graph=self.chosen.captured.graph,
            warnings=(*self.chosen.notes, *self.warnings),
            swept=self.swept,
        )

    def failed(self, strategy: Strategy, sentence: str) -> Run:
        """A run that holds nothing but the reason."""
        return dataclasses.replace(self.blank(strategy), error=sentence)

    def warning(self, sentence: str) -> "RunMaker":
        """The same, with one more thing that every run should say."""
        return dataclasses.replace(self, warnings=(*self.warnings, sentence))
