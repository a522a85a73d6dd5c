"""The command line: one file a subcommand, imported when it is asked for.

Exit codes: 0 done, 1 a run failed or a file could not be read or written, 2 wrong usage,
130 interrupted. A failure is one sentence on stderr, never a traceback.
"""

from collections.abc import Sequence

from explorer.cli import interrupts


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command line and return the exit code.

    Args:
        arguments: Without the program's name. None for ``sys.argv``: this process is then the
            program and ends with it, so that its signals are ours to handle.
    """
    try:
        if arguments is None:
            interrupts.hear_once()
        # Late, so that Ctrl-C while the modules load is told like any other.
        from explorer.cli.dispatch import carry_out

        code = carry_out(arguments)
        interrupts.ignore()
    except KeyboardInterrupt:
        from explorer.cli.terminal import INTERRUPTED, write_error

        write_error("interrupted.")
        return INTERRUPTED
    return code
