"""``kernel-explorer worker``: the loop that ssh starts, on this very Python."""

from argparse import Namespace


def execute(options: Namespace) -> int:
    """Serve until stdin ends."""
    from explorer.worker.server import main

    return main([] if options.session is None else ["--session", options.session])
