"""Rules about the sources that no linter knows: sizes, and what a commit must not give away.

``python -m tools.check_sources`` from the checkout prints each breach and exits 1 if there is one.
"""

from __future__ import annotations

import ast
import gzip
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 80

# Never committed: built, installed or cached.
SKIPPED_FOLDERS = {".git", ".venv", "build", "dist", "shots", "__pycache__"}
SKIPPED_ENDINGS = ("_cache", ".egg-info")

# A checkout must install from whatever index the user's pip and apt are set to.
REGISTRY_HOST = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.org|download\.pytorch\.org|(?:deb|security|snapshot)"
    r"\.debian\.org|(?:archive|security)\.ubuntu\.com|conda\.anaconda\.org"
)
# Folders that exist on somebody's machine only. Slashes in brackets: this file is checked too.
MACHINE_PATH = re.compile(
    r"(?<![\w.~-])(?:[/]work/|[/]root/|[/]home/\w|[/]Users/\w|[/]opt/(?:wheels|pypi))|[.]pyenv[/]"
)


def source_files(root: Path) -> Iterator[Path]:
    """Walk the files of a checkout that are, or would be, committed.

    Args:
        root: The checkout.
    """
    for path in sorted(root.iterdir()):
        if path.is_symlink() or path.name.endswith(SKIPPED_ENDINGS):
            continue
        if path.is_dir():
            if path.name not in SKIPPED_FOLDERS:
                yield from source_files(path)
        else:
            yield path


def check_sizes(path: Path, text: str) -> Iterator[str]:
    """Yield a sentence for a Python file, and each function in it, that is too long."""
    n_lines = text.count("\n")
    if n_lines > MAX_FILE_LINES:
        yield f"{path}: {n_lines} lines, at most {MAX_FILE_LINES} allowed"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            n_function_lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if n_function_lines > MAX_FUNCTION_LINES:
                yield (
                    f"{path}:{node.lineno}: {node.name} has {n_function_lines} lines, "
                    f"at most {MAX_FUNCTION_LINES} allowed"
                )


def check_contents(path: Path, data: bytes) -> Iterator[str]:
    """Yield a sentence for each registry host or machine path in a file.

    Args:
        path: Named in the sentence.
        data: The file's bytes; a gzip file, such as a recording, is looked into.
    """
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    text = data.decode("utf-8", errors="replace")
    for pattern, what in ((REGISTRY_HOST, "a package registry"), (MACHINE_PATH, "one machine")):
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {match.group()!r} names {what}"


def check_checkout(root: Path) -> list[str]:
    """Return every breach in a checkout, as sentences.

    Args:
        root: The checkout.
    """
    breaches: list[str] = []
    for path in source_files(root):
        data = path.read_bytes()
        shown = path.relative_to(root)
        breaches += check_contents(shown, data)
        if path.suffix == ".py":
            breaches += check_sizes(shown, data.decode("utf-8"))
    return breaches


def main() -> int:
    """Print the breaches and return the exit code."""
    breaches = check_checkout(Path(__file__).resolve().parent.parent)
    sys.stdout.writelines(f"{breach}\n" for breach in breaches)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
