"""What the command line writes, and the codes it exits with."""

import json
import sys
from typing import Any

DONE = 0
FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130

PROGRAM = "kernel-explorer"


def write_result(text: str) -> None:
    """Write a result to stdout, a line end after it."""
    sys.stdout.write(text + "\n")


def write_json(document: Any) -> None:
    """Write a result to stdout as JSON in one line."""
    write_result(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def write_note(sentence: str) -> None:
    """Tell a person something on stderr that is no result."""
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()


def write_error(sentence: str) -> None:
    """Say on stderr in one sentence what went wrong."""
    write_note(f"{PROGRAM}: {sentence}")
