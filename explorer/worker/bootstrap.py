"""First file a worker runs: makes this program's own modules importable, and nothing else.

The worker runs on the Python that the user names, with the user's packages. Only the names in
``OWN`` come from where this program lies, and ``pynvml`` where the user has none; no folder is
added to ``sys.path``, so none of our packages shadows one of theirs or comes into sight.

It runs before anything is known of that Python. So it imports nothing of ours, keeps to what
Python 3.7 understands, and writes its refusals in the worker's protocol by hand: an old Python
must get as far as the sentence.
"""

from __future__ import annotations

import json
import os
import re
import sys
from importlib import machinery, util

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

OWN = ("explorer", "kernels")
OLDEST_PYTHON = (3, 11)
OLDEST_TORCH = (2, 11)
CANNOT_START = 3
HERE = os.path.dirname(os.path.realpath(__file__))
HOME = os.path.dirname(os.path.dirname(HERE))


class OwnModules:
    """A meta-path finder that finds the named top-level modules in one folder, and no others."""

    def __init__(self, names: Sequence[str], folder: str) -> None:
        self._names = tuple(names)
        self._folder = folder

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> machinery.ModuleSpec | None:
        """Answer Python's import system (see ``importlib.abc.MetaPathFinder``)."""
        if fullname not in self._names:
            return None
        return machinery.PathFinder.find_spec(fullname, [self._folder], target)


def fault_of_python() -> str | None:
    """Say in one sentence what this Python lacks, or None; needs none of our modules."""
    found = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < OLDEST_PYTHON:
        return (
            f"{sys.executable} is Python {found}, and 3.11 or newer is needed; "
            "name another with --worker-python."
        )
    if util.find_spec("torch") is None:
        return (
            f"{sys.executable} (Python {found}) has no torch: install it there with "
            f"'{sys.executable} -m pip install torch', or name another Python with --worker-python."
        )
    return _fault_of_torch()


def _fault_of_torch() -> str | None:
    from importlib import metadata

    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        # Built from source and put on the path by hand: the import will tell.
        return None
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and tuple(int(part) for part in numbers.groups()) < OLDEST_TORCH:
        oldest = ".".join(str(part) for part in OLDEST_TORCH)
        return (
            f"{sys.executable} has torch {version}, and {oldest} or newer is needed; update it, "
            "or name another Python with --worker-python."
        )
    return None


def refuse(sentence: str) -> int:
    """Answer with the sentence, as the protocol spells it, and return the exit code."""
    body = {"sentence": sentence, "usage": True}
    line = json.dumps({"type": "RequestFailed", "body": body}) + "\n"
    os.write(1, line.encode("utf-8"))
    return CANNOT_START


def main(arguments: Sequence[str]) -> int:
    """Check this Python, make our modules findable and hand over to the server.

    Args:
        arguments: ``--pynvml FOLDER`` says where ours lies; the rest is the server's.
    """
    rest = list(arguments)
    # Python puts a script's own folder first; "client" and "server" are no names to take there.
    sys.path[:] = [folder for folder in sys.path if os.path.realpath(folder or ".") != HERE]
    # A session named on the command line decides for itself what it needs.
    fault = None if "--session" in rest else fault_of_python()
    if fault is not None:
        return refuse(fault)
    sys.meta_path.insert(0, OwnModules(OWN, HOME))
    if "--pynvml" in rest:
        at = rest.index("--pynvml")
        sys.meta_path.append(OwnModules(("pynvml",), rest[at + 1]))
        del rest[at : at + 2]

    from explorer.worker.server import main as serve

    return serve(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
