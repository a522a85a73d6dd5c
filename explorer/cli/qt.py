"""Says in a sentence what is missing when Qt cannot be loaded."""

import contextlib
import re
from collections.abc import Iterator

from explorer.model.errors import ExplorerError


@contextlib.contextmanager
def explain_missing_qt() -> Iterator[None]:
    """Turn a failed import of the window into one sentence with the remedy.

    Raises:
        ExplorerError: A library or PySide6 itself is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("PySide6", "shiboken6", "pyqtgraph"):
            raise
        raise ExplorerError(
            f"The window needs {error.name}, which is not installed; "
            "pip install PySide6-Essentials pyqtgraph."
        ) from error
    except ImportError as error:
        found = re.match(r"(\S+\.so[.\d]*): cannot open", str(error))
        if found is None:
            raise
        raise ExplorerError(
            f"Qt needs the system library {found[1]}, which is not installed; make run in the "
            "checkout names the package and the command that installs it."
        ) from error
