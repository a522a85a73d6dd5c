"""What the command line writes, and the codes it exits with.

Files may hold anything, so nothing that could move the cursor or break a line gets to a terminal.
Standard streams may be closed, full or gone: results that cannot be written are an error, notes
and progress that cannot be are not.
"""

import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable
from typing import Any, TextIO

from explorer.model.errors import ExplorerError

DONE = 0
FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130

PROGRAM = "kernel-explorer"
MOST_CHARACTERS = 4000
"""A longer line loses its middle: it quotes something that nobody would read."""
WIDTH = 120
"""Characters a line of prose has at most, but for a word, such as a plan, that is longer."""

_BREAKS = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def open_streams() -> None:
    """Give a closed stdin, stdout or stderr an empty one, and let none fail on a character.

    Otherwise the next file to be opened, a recording for example, gets the free number, and what
    a library prints ends up in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is taken, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            stream = os.fdopen(number, "w", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)
        # A terminal that cannot show µ shows a question mark instead of ending the program.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def one_line(text: str) -> str:
    """The text without line breaks and without what a terminal would obey instead of show."""
    shown = _CONTROLS.sub("\ufffd", _BREAKS.sub(" ", text))
    if len(shown) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        shown = f"{shown[:half]}…{shown[-half:]}"
    return shown


def paragraphs(sentences: Iterable[str], indent: str = "") -> list[str]:
    """What a person reads, in lines of at most :data:`WIDTH`, broken at blanks alone.

    Args:
        sentences: Each begins a line; breaks of its own become blanks.
        indent: Before its first line; those after it stand two blanks deeper.
    """
    wrapper = textwrap.TextWrapper(
        width=WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [line for sentence in sentences for line in wrapper.wrap(one_line(sentence))]


def write_lines(lines: Iterable[str]) -> None:
    """Write a result of several lines to stdout; raises as :func:`write_result`."""
    write_result("\n".join(one_line(line) for line in lines))


def write_json(document: Any) -> None:
    """Write a result as JSON in one line of ASCII, which no locale spoils.

    Raises as :func:`write_result`.
    """
    write_result(json.dumps(document, separators=(",", ":")))


def write_result(text: str) -> None:
    """Write a result to stdout, a line end after it.

    Raises:
        BrokenPipeError: Nobody reads it any more.
        ExplorerError: It cannot be written; the sentence says why.
    """
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_stdout()
        reason = error.strerror or str(error)
        raise ExplorerError(f"The result could not be written to stdout: {reason}.") from error


def silence_stdout() -> None:
    """Do without stdout from here on, see :func:`silence`."""
    silence(sys.stdout)


def silence(stream: TextIO) -> None:
    """Let a stream's file be an empty one from here on, what is left in the buffer included.

    Python would complain of it again at its exit, and some (3.11.2) end with a code of their own.
    """
    empty = os.open(os.devnull, os.O_WRONLY)
    os.dup2(empty, stream.fileno())
    os.close(empty)


def write_note(sentence: str) -> None:
    """Tell a person something on stderr that is no result; nobody there to read it is no fault."""
    write_to_stderr(one_line(sentence) + "\n")


def write_error(sentence: str) -> None:
    """Say on stderr in one sentence what went wrong."""
    write_note(f"{PROGRAM}: {sentence}")


def write_to_stderr(text: str) -> None:
    """Write as it is, and do without where stderr is full or its reader has gone."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)
