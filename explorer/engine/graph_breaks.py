"""Where Dynamo gives up one graph and begins another, with the reason in words."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from explorer.engine.trace_log import hearing
from explorer.model.opgraph import GraphBreak

INSTALLED = ("site-packages", "dist-packages")
"""Folders of packages; they lie within Python's own."""
_TORCH, _PYTHON = Path(torch.__file__).parent, Path(logging.__file__).parents[1]
_PROGRAM = Path(__file__).parents[1]
_BREAK = "dynamo_graph_break_reason"
_FRAME = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in ')
_WHERE = re.compile(r"Graph break in user code at (?P<file>.+):(?P<line>\d+)")
_EXPLAINED = re.compile(r"^[ \t]*Explanation:[ \t]*(?P<text>\S.*)$", re.MULTILINE)
_SUMMARY = re.compile(r"^(?P<text>\S.*)\n[ \t]*Explanation:", re.MULTILINE)
_HINTS = re.compile(r"^\s*(Hint|Developer debug context):", re.MULTILINE)
_CALLED = re.compile(
    r"(?:builtin(?: operator)?|the function|calling function|C function) `(?P<name>[^`]+?)\.?`"
)
_UNKNOWN = "<unknown module>."
_MOST_REASON, _MOST_RAW = 160, 4000
"""Characters of a reason that is torch's own, and of everything that torch says."""
_IN_WORDS = (
    ("Tensor.item()", "a number is taken out of a tensor"),
    ("_local_scalar_dense", "a number is taken out of a tensor"),
    ("tolist()", "numbers are taken out of a tensor"),
    ("ata-dependent branching", "a branch depends on a tensor's values"),
    ("torch._dynamo.graph_break()", "the code asks for a graph break"),
    ("torch.compiler.disable", "the code asks not to be compiled"),
    ("logging.Logger", "a logger is called, which Dynamo cannot trace"),
    ("LoggingLogger", "a logger is called, which Dynamo cannot trace"),
    ("`torch.nn.Parameter()` constructor", "a parameter is made, which Dynamo cannot trace"),
    ("run FX node with fake tensors", "an operator fails, which Dynamo does not let code catch"),
    ("Unsupported context manager", "a `with` block is entered that Dynamo cannot trace"),
    ("opaque object was created", "an object is made that a graph cannot hold, as a generator"),
    ("backwards hooks", "a module has a backward hook, which Dynamo does not trace"),
    ("tag_activation_checkpoint", "activation checkpointing computes anew what it did not keep"),
    ("RNN, GRU, or LSTM", "Dynamo does not trace RNN, GRU and LSTM"),
    ("Dynamic shape operator", "the size of a result depends on values"),
    ("Dynamic slicing", "the size of a result depends on values"),
)
"""Parts of what torch says, with what they mean."""


def is_users(file: str) -> bool:
    """Whether a file is neither of torch, of Python nor of this program."""
    if file.startswith("<"):
        return False
    path = Path(file)
    if path.is_relative_to(_PROGRAM) or path.is_relative_to(_TORCH):
        return False
    is_installed = any(part in INSTALLED for part in path.parts)
    return is_installed or not path.is_relative_to(_PYTHON)


@contextmanager
def watching_breaks(is_users: Callable[[str], bool]) -> Iterator[list[GraphBreak]]:
    """List the graph breaks of what is compiled inside the ``with`` block.

    Args:
        is_users: Whether a file is the user's, whose line is told.
    """
    breaks: list[GraphBreak] = []

    def hear(payload: str) -> None:
        found = read_break(payload, is_users)
        # One place may fail in two ways, as when Dynamo cannot even go on behind it.
        known = {each.place or each.reason for each in breaks}
        if (found.place or found.reason) not in known:
            breaks.append(found)

    with hearing(_BREAK, hear):
        yield breaks


def read_break(text: str, is_users: Callable[[str], bool]) -> GraphBreak:
    """A graph break as torch tells it: the innermost line of the user's, and why."""
    traced = text.partition("User code traceback:")[2].partition("\nTraceback (most recent")[0]
    frames = [(m["file"], m["line"]) for m in _FRAME.finditer(traced)]
    # What stands before this program's last frame is whoever called it.
    callers = max((i for i, (file, _) in enumerate(frames, 1) if is_programs(file)), default=0)
    frames = [(file, line) for file, line in frames[callers:] if is_users(file)]
    where = _WHERE.search(text)
    if not frames and where is not None and not Path(where["file"]).is_relative_to(_TORCH):
        frames = [(where["file"], where["line"])]
    said = text.partition("User code traceback:")[0]
    return GraphBreak(
        place=_place(frames), reason=reason_in_words(said), raw=said.strip()[:_MOST_RAW]
    )


def break_of_error(error: Exception, is_users: Callable[[str], bool]) -> GraphBreak:
    """What an error of torch's, raised while a graph was made, says of a break."""
    text = str(error)
    frames = [(m["file"], m["line"]) for m in _FRAME.finditer(text) if is_users(m["file"])]
    return GraphBreak(
        place=_place(frames), reason=reason_in_words(text), raw=text.strip()[:_MOST_RAW]
    )


def _place(frames: Sequence[tuple[str, str]]) -> str:
    """The innermost line; empty where there is none."""
    return f"{Path(frames[-1][0]).name}:{frames[-1][1]}" if frames else ""


def is_programs(file: str) -> bool:
    """Whether a file is this program's own."""
    return Path(file).is_relative_to(_PROGRAM)


def reason_in_words(text: str) -> str:
    """Why a graph broke in a few plain words, without torch's own advice."""
    said = _HINTS.split(text, maxsplit=1)[0]
    for part, words in _IN_WORDS:
        if part in said:
            return words
    called = _CALLED.search(said)
    if called is not None:
        return f"{called['name'].removeprefix(_UNKNOWN)}() is called, which Dynamo cannot trace"
    explained = _EXPLAINED.search(said) or _SUMMARY.search(said)
    if explained is not None:
        return _first_sentence(explained["text"])
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return _first_sentence(lines[0]) if lines else "Dynamo does not say why"


def _first_sentence(text: str) -> str:
    """What stands before the first full stop, shortened if that is long."""
    first = re.split(r"\.(?=\s|$)", text.strip().replace("`", ""), maxsplit=1)[0]
    return first if len(first) <= _MOST_REASON else f"{first[: _MOST_REASON - 1].rstrip()}…"
