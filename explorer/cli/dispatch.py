"""Finds the subcommand, lets it do its work, and tells whatever goes wrong in one sentence."""

import os
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module

from explorer.cli.arguments import make_parser
from explorer.cli.terminal import (
    FAILED,
    WRONG_USAGE,
    open_streams,
    silence_stdout,
    write_error,
)
from explorer.model.errors import ExplorerError, UsageError
from explorer.worker.client import DEBUG_VARIABLE

COMMANDS = {
    None: "explorer.cli.start",
    "chains": "explorer.cli.chains",
    "run": "explorer.cli.run",
    "export": "explorer.cli.export",
    "show": "explorer.cli.show",
    "check": "explorer.cli.check",
    "doctor": "explorer.cli.doctor",
    "worker": "explorer.cli.worker",
}
"""Each module has a function ``execute(options) -> exit code``."""


def carry_out(arguments: Sequence[str] | None) -> int:
    """Carry out a command line and return the exit code.

    Args:
        arguments: Without the program's name; None for ``sys.argv``.

    Raises:
        KeyboardInterrupt: The user interrupted.
    """
    open_streams()
    try:
        options = make_parser().parse_args(arguments)
        return _find(options.command)(options)
    except UsageError as error:
        write_error(str(error))
        return WRONG_USAGE
    except ExplorerError as error:
        write_error(str(error))
        return FAILED
    except MemoryError:
        write_error("there is not enough memory for it; close other programs, then try again.")
        return FAILED
    except BrokenPipeError:
        # The reader, such as head, has had enough.
        silence_stdout()
        return FAILED
    except Exception as error:
        # A mistake of this program's own. Whoever mends it wants the traceback, nobody else.
        if os.environ.get(DEBUG_VARIABLE):
            raise
        first = (str(error).splitlines() or [""])[0]
        write_error(
            f"a mistake in this program, {type(error).__name__}: {first}; please report it with "
            f"what {DEBUG_VARIABLE}=1 prints."
        )
        return FAILED


def _find(command: str | None) -> Callable[[Namespace], int]:
    execute: Callable[[Namespace], int] = import_module(COMMANDS[command]).execute
    return execute
