"""What goes wrong in somebody's own code, as one sentence that names the line of theirs."""

import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from explorer.engine.faults import first_line, is_device_lost, is_out_of_memory
from explorer.engine.own_code.exits import exit_call
from explorer.model.errors import ExplorerError

IsOwn = Callable[[str], bool]
"""Whether a file is the user's, by the name that tracebacks give it."""


class OwnCodeError(ExplorerError):
    """Somebody's own code raised an error, or ended the program."""


class OwnCodeNoRoomError(OwnCodeError, RuntimeError):
    """Memory was what it lacked; a RuntimeError, as torch's own is."""


@contextmanager
def told_by_line(doing: str, is_own: IsOwn) -> Iterator[None]:
    """Turn what own code raises inside the ``with`` block into one sentence.

    Args:
        doing: What was being done, for code that has no line: ``loading net.py``.
        is_own: Which files are the user's.

    Raises:
        OwnCodeError: The code raised something, or called ``sys.exit`` or ``os._exit``.
        OwnCodeNoRoomError: It ran out of memory.
    """
    try:
        yield
    except ExplorerError:
        raise
    except SyntaxError as error:
        raise OwnCodeError(_syntax_sentence(error, doing)) from error
    except SystemExit as error:
        place = line_at_fault(error, is_own) or f"What was run while {doing}"
        raise OwnCodeError(exit_sentence(place, error)) from error
    except Exception as error:
        # A lost device has a sentence of its own, which the caller gives it.
        if is_device_lost(error):
            raise
        at = line_at_fault(error, is_own)
        if is_out_of_memory(error):
            raise OwnCodeNoRoomError(
                f"{at or f'What was run while {doing}'} ran out of memory; give it smaller inputs."
            ) from error
        said = f"{type(error).__name__}: {first_line(error)}"
        told = f"{at} raises {said}." if at else f"An error while {doing}: {said}."
        raise OwnCodeError(told) from error


def exit_sentence(place: str, error: SystemExit) -> str:
    """Say that own code ends the program.

    Args:
        place: Its line, or whatever else did it.
        error: What the call raised.
    """
    return (
        f"{place} ends the program with {exit_call(error)}; take that call out of what is "
        "imported and run."
    )


def line_of(file: str, number: int) -> str:
    """The text of a line, stripped; empty where it cannot be read."""
    return linecache.getline(file, number).strip()


def place_of(file: str, number: int) -> str:
    """A line as a person writes it: ``file.py:12``."""
    return f"{Path(file).name}:{number}"


def line_at_fault(error: BaseException, is_own: IsOwn) -> str | None:
    """The user's innermost line on the way to an error, with its text."""
    frames = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.lineno is not None and is_own(frame.filename)
    ]
    if not frames:
        return None
    file, number = frames[-1]
    text = line_of(file, number)
    return f"{place_of(file, number)} ({text})" if text else place_of(file, number)


def _syntax_sentence(error: SyntaxError, doing: str) -> str:
    if error.filename is None:
        return f"An error while {doing}: it is not Python: {error.msg}."
    place = place_of(error.filename, error.lineno or 1)
    text = (error.text or "").strip()
    shown = f" ({text})" if text else ""
    return f"{place}{shown} is not Python: {error.msg}."
