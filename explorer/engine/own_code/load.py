"""Finds the function or class that a name means: in a file, or in an importable module.

A file is loaded anew for each request, with what it imports from its own folder, so that what runs
is what stands in it. Its code is compiled here rather than through Python's cache of compiled
files, which takes two edits within a second for one.
"""

import difflib
import importlib
import inspect
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from explorer.chains.own import OwnName, read_name
from explorer.engine.graph_breaks import INSTALLED, is_users
from explorer.engine.own_code.errors import told_by_line
from explorer.model.errors import UsageError

_NAME = "kernel_explorer_own_"

_from_folder: dict[str, set[str]] = {}
"""By folder, the names of the modules that files of it imported from it."""
_seen: dict[str, float] = {}
"""By importable module, when its file was last changed as it was loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What was named.

    Attributes:
        name: As typed.
        found: The function, class or module instance.
        module: Where it stands.
    """

    name: str
    found: Any
    module: ModuleType

    @property
    def file(self) -> str:
        """The file that it stands in, as tracebacks name it; empty where it has none."""
        return str(getattr(self.module, "__file__", None) or "")

    def is_own(self, file: str) -> bool:
        """Whether a file's lines are worth showing: not torch's, Python's or this program's."""
        return file == self.file or is_users(file)


def load_target(name: str) -> Target:
    """Load what a name means.

    Args:
        name: ``path/to/file.py:function`` or ``package.module:Class``.

    Raises:
        UsageError: The file, the module or what is named in it is not there, or cannot be called.
        OwnCodeError: Its code raised something on the way.
    """
    own = read_name(name)
    own.check_there()
    module = _file_module(Path(own.where)) if own.is_file else _imported(own)
    found: Any = module
    for part in own.what.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{own.where} has no {part!r}{_near(found, part)}.")
        found = getattr(found, part)
    if isinstance(found, type) and not issubclass(found, torch.nn.Module):
        raise UsageError(
            f"{own.what} in {own.where} is a class, but no torch.nn.Module; name a function or a "
            "module."
        )
    if inspect.iscoroutinefunction(found) or inspect.isgeneratorfunction(found):
        raise UsageError(
            f"{own.what} in {own.where} is an async function or a generator, which computes "
            "nothing when called; name a plain function."
        )
    if not callable(found):
        raise UsageError(
            f"{own.what} in {own.where} cannot be called: it is of type {type(found).__name__}; "
            "name a function or a torch.nn.Module."
        )
    owner = found if isinstance(found, type) else type(found)
    if getattr(owner, "forward", None) is torch.nn.Module.forward:
        raise UsageError(
            f"{own.what} in {own.where} has no forward(), so that it cannot be called; give it one."
        )
    return Target(name=name, found=found, module=module)


def _near(owner: object, part: str) -> str:
    """What else could have been meant, in words."""
    there = {n: v for n, v in vars(owner).items() if callable(v) and not n.startswith("_")}
    lowered = {name.lower(): name for name in there}
    alike = [lowered[near] for near in difflib.get_close_matches(part.lower(), lowered)]
    if not alike and is_users(str(getattr(owner, "__file__", None) or "<none>")):
        home = getattr(owner, "__name__", None)
        alike = [n for n, value in there.items() if getattr(value, "__module__", None) == home]
    return f"; it has {', '.join(alike[:8])}" if alike else ""


def _file_module(path: Path) -> ModuleType:
    path = path.resolve()
    folder = str(path.parent)
    for stale in _from_folder.pop(folder, set()):
        sys.modules.pop(stale, None)
    linecache.checkcache()
    module = ModuleType(f"{_NAME}{path.stem}")
    module.__file__ = str(path)
    package, root = _package_of(path)
    if package:
        # As if it had been imported from there, for its relative imports.
        module.__package__ = package
    before = set(sys.modules)
    # Dataclasses and pickles look a module up by its name.
    sys.modules[module.__name__] = module
    with (
        told_by_line(f"loading {path.name}", lambda file: file == str(path)),
        _importing(folder, root),
    ):
        code = compile(path.read_bytes(), str(path), "exec")
        exec(code, vars(module))
    _from_folder[folder] = {
        name
        for name in set(sys.modules) - before
        if _is_in(sys.modules[name], path.parent) and name != module.__name__
    }
    return module


def _package_of(path: Path) -> tuple[str, str]:
    """The dotted name of the package that a file lies in, empty for none, and where that is."""
    folder, names = path.parent, list[str]()
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names), str(folder)


def _is_in(module: ModuleType | None, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    path = Path(file)
    return path.is_relative_to(folder) and not any(part in INSTALLED for part in path.parts)


@contextmanager
def _importing(*folders: str) -> Iterator[None]:
    """With folders first on ``sys.path``, as Python has that of a script."""
    sys.path[:0] = folders
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for folder in folders:
            if folder in sys.path:
                sys.path.remove(folder)


def _imported(own: OwnName) -> ModuleType:
    linecache.checkcache()
    with _importing(str(Path.cwd())):
        try:
            with told_by_line(f"importing {own.where}", is_users):
                module = importlib.import_module(own.where)
                return _fresh(module)
        except ImportError as error:
            raise _no_module(own, error) from error
        except Exception as error:
            cause = error.__cause__
            if isinstance(cause, ModuleNotFoundError) and _names(cause, own.where):
                raise _no_module(own, cause) from error
            raise


def _names(error: ImportError, where: str) -> bool:
    """Whether it is the module itself, or a package around it, that is missing."""
    return error.name is not None and (where == error.name or where.startswith(f"{error.name}."))


def _no_module(own: OwnName, error: ImportError) -> UsageError:
    missing = error.name or own.where
    root = missing.partition(".")[0]
    if missing == root:
        return UsageError(
            f"There is no module {own.where}: {root} is not installed for {sys.executable}; "
            f"install it there, or name another Python with --worker-python."
        )
    return UsageError(f"There is no module {own.where}: {root} has no {missing}.")


def _fresh(module: ModuleType) -> ModuleType:
    """The module as its file is now."""
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file():
        return module
    changed = Path(file).stat().st_mtime
    known = _seen.setdefault(module.__name__, changed)
    if known != changed:
        _seen[module.__name__] = changed
        module = importlib.reload(module)
    return module
