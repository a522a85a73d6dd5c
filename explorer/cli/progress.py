"""Progress of a run on stderr: one line rewritten on a terminal, a line a step elsewhere."""

import contextlib
import os
import sys
import threading
import time
from dataclasses import dataclass, replace
from typing import TextIO

from explorer.cli.table import shortened
from explorer.cli.terminal import one_line, silence
from explorer.model.comparison import headline
from explorer.model.messages import Progress, Stage
from explorer.model.run import Run
from explorer.model.units import format_us

ERASE_LINE = "\r\x1b[K"
TICK_S = 1.0
USUAL_COLUMNS = 80
LEAST_COLUMNS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PointPlace:
    """Where a request stands among the points of a sweep.

    Attributes:
        number: From 1 on.
        of: How many points there are.
        text: What the point is: ``seq_len=2048``.
    """

    number: int
    of: int
    text: str

    def title(self, strategy: str | None) -> str:
        """``point 3 of 5: seq_len=2048, compile``."""
        own = f"point {self.number} of {self.of}: {self.text}"
        return own if strategy is None else f"{own}, {strategy}"

    def placed(self, progress: Progress) -> Progress:
        """A step of the point as one of the whole sweep."""
        fraction = progress.fraction
        if fraction is not None:
            fraction = (self.number - 1 + min(max(fraction, 0.0), 1.0)) / self.of
        return replace(progress, strategy=self.title(progress.strategy), fraction=fraction)


class ProgressDisplay:
    """Shows where a run stands. To be closed before anything else is written to stderr.

    On a terminal the seconds go on between two steps, so that a long compile does not look stuck.
    Where it cannot be written (a full disk, a reader that has gone) the work goes on without it.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._rewrites = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._began_s = time.monotonic()
        self._last = ""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._ticker: threading.Thread | None = None

    def update(self, progress: Progress) -> None:
        """Show a step."""
        if not self._rewrites:
            # The share alone moves all the time; a log wants the steps.
            step = progress_text(progress, with_share=False)
            if step != self._last:
                self._write(f"{step}\n")
                self._last = step
            return
        with self._lock:
            self._last = progress_text(progress)
            self._rewrite()
        if self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
            self._ticker.start()

    def tell(self, sentence: str) -> None:
        """Write a line that stays."""
        with self._lock:
            self._write((ERASE_LINE if self._rewrites else "") + one_line(sentence) + "\n")
            self._last = ""

    def finished(self, run: Run, title: str | None = None) -> None:
        """Say that a strategy is done, and how it went.

        Args:
            run: What came of it.
            title: What the strategy is called; as on the command line if left out.
        """
        timed = headline(run)
        if run.error is not None:
            how = "failed"
        elif timed is not None:
            how = f"done, {format_us(timed.samples.median_us)}"
        else:
            how = "done, not timed"
        self.tell(f"{title or run.strategy.spec}: {how}")

    def close(self) -> None:
        """Take the rewritten line away."""
        self._closing.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._rewrites and self._last:
            self._write(ERASE_LINE)
        self._last = ""

    def _tick(self) -> None:
        while not self._closing.wait(TICK_S):
            with self._lock:
                if self._last:
                    self._rewrite()

    def _rewrite(self) -> None:
        elapsed = f"{time.monotonic() - self._began_s:.0f} s"
        line = shortened(f"{elapsed:>6}  {self._last}", self._columns() - 1)
        self._write(ERASE_LINE + line)

    def _columns(self) -> int:
        """How wide the terminal is; stdout, which others ask, may be a file or a wider one."""
        named = os.environ.get("COLUMNS", "")
        found = int(named) if named.isdecimal() else 0
        if not found:
            with contextlib.suppress(OSError):
                found = os.get_terminal_size(self._stream.fileno()).columns
        return max(found or USUAL_COLUMNS, LEAST_COLUMNS)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            silence(self._stream)


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
    return one_line("  ".join(parts))
