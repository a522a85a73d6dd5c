"""The command line: one file a subcommand, imported when it is asked for.

Exit codes: 0 done, 1 a run failed or a file could not be read or written, 2 wrong usage,
130 interrupted. A failure is one sentence on stderr, never a traceback.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module

from explorer.cli.arguments import make_parser
from explorer.cli.terminal import FAILED, INTERRUPTED, WRONG_USAGE, write_error
from explorer.model.errors import ExplorerError, UsageError
from explorer.worker.client import DEBUG_VARIABLE

COMMANDS = {
    None: "explorer.cli.start",
    "chains": "explorer.cli.chains",
    "run": "explorer.cli.run",
    "export": "explorer.cli.export",
    "show": "explorer.cli.show",
    "doctor": "explorer.cli.doctor",
    "worker": "explorer.cli.worker",
}
"""Each module has a function ``execute(options) -> exit code``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command line and return the exit code.

    Args:
        arguments: Without the program's name; None for ``sys.argv``.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show µ shows a question mark instead of ending the program.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    try:
        options = make_parser().parse_args(arguments)
        code = _find(options.command)(options)
        sys.stdout.flush()
    except UsageError as error:
        write_error(str(error))
        return WRONG_USAGE
    except ExplorerError as error:
        write_error(str(error))
        return FAILED
    except KeyboardInterrupt:
        write_error("interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as head, has had enough; Python would complain again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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
    return code


def _find(command: str | None) -> Callable[[Namespace], int]:
    execute: Callable[[Namespace], int] = import_module(COMMANDS[command]).execute
    return execute
