"""Progress of a run on stderr: one line rewritten on a terminal, a line a step elsewhere."""

import shutil
import sys
import time
from typing import TextIO

from explorer.cli.table import shortened
from explorer.model.comparison import headline
from explorer.model.messages import Progress, Stage
from explorer.model.run import Run
from explorer.model.units import format_us

ERASE_LINE = "\r\x1b[K"


class ProgressDisplay:
    """Shows where a run stands. To be closed before anything else is written to stderr."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._rewrites = self._stream.isatty()
        self._began_s = time.monotonic()
        self._last = ""

    def update(self, progress: Progress) -> None:
        """Show a step."""
        text = progress_text(progress)
        if not self._rewrites:
            # The share alone moves all the time; a log wants the steps.
            step = progress_text(progress, with_share=False)
            if step != self._last:
                self._write(f"{step}\n")
                self._last = step
            return
        elapsed = f"{time.monotonic() - self._began_s:.0f} s"
        width = shutil.get_terminal_size().columns - 1
        self._write(ERASE_LINE + shortened(f"{text}  ({elapsed})", width))
        self._last = text

    def tell(self, sentence: str) -> None:
        """Write a line that stays."""
        self._write((ERASE_LINE if self._rewrites else "") + sentence + "\n")
        self._last = ""

    def finished(self, run: Run) -> None:
        """Say that a strategy is done, and how it went."""
        timed = headline(run)
        if run.error is not None:
            how = "failed"
        elif timed is not None:
            how = f"done, {format_us(timed.samples.median_us)}"
        else:
            how = "done, not timed"
        self.tell(f"{run.strategy.spec}: {how}")

    def close(self) -> None:
        """Take the rewritten line away."""
        if self._rewrites and self._last:
            self._write(ERASE_LINE)
        self._last = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def starting() -> Progress:
    """What is shown while the worker imports torch, before it can speak for itself."""
    return Progress(stage=Stage.STARTING, sentence="the worker loads torch")


def progress_text(progress: Progress, *, with_share: bool = True) -> str:
    """``42 %  compile:max-autotune  compile: generating kernels``."""
    parts = []
    if with_share and progress.fraction is not None:
        parts.append(f"{min(max(progress.fraction, 0.0), 1.0):4.0%}".replace("%", " %"))
    if progress.strategy is not None:
        parts.append(progress.strategy)
    parts.append(f"{progress.stage.value}: {progress.sentence.rstrip('.')}")
    return "  ".join(parts)
