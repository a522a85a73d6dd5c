"""Recordings: a versioned file of runs, written whole or not at all, read without trust.

A ``.kx`` file is gzip-compressed JSON:
``{"format": "kernel-explorer", "version": 1, "runs": [...]}``.
Nothing in it is ever executed; it is data for the records of ``explorer.model`` and no more.
"""

import errno
import gzip
import json
import os
import stat
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from explorer.model.codec import DecodeError, from_plain, to_plain
from explorer.model.errors import RecordingError
from explorer.model.plausibility import first_fault
from explorer.model.run import Run

FORMAT = "kernel-explorer"
VERSION = 1
SUFFIX = ".kx"
MOST_PLAIN_BYTES = 128 * 1024 * 1024
"""A recording that unpacks to more is refused: a few hundred kilobytes can hold gigabytes. A run is
some tens of kilobytes."""
MOST_PARTS = 4_000_000
"""Lists and objects in a recording: empty ones take three bytes there and seventy in memory. A run
has a few hundred."""


def runs_to_plain(runs: Sequence[Run]) -> dict[str, Any]:
    """The document that ``--json`` prints and a ``.kx`` file holds."""
    return {"format": FORMAT, "version": VERSION, "runs": [to_plain(run) for run in runs]}


def save_recording(path: Path, runs: Sequence[Run]) -> None:
    """Write the runs to ``path``; a crash or a full disk leaves what was there before.

    Raises:
        RecordingError: The file cannot be written; the sentence says why.
    """
    text = json.dumps(runs_to_plain(runs), separators=(",", ":"))
    if len(text) > MOST_PLAIN_BYTES:
        raise RecordingError(
            f"{path} could not be written: {len(runs)} runs are more than the "
            f"{MOST_PLAIN_BYTES >> 20} MiB that a recording may hold; save fewer in one."
        )
    # mtime=0: the same runs give the same bytes, so that a committed recording diffs cleanly.
    data = gzip.compress(text.encode(), mtime=0)
    try:
        write_atomically(path, data)
    except OSError as error:
        raise _unwritable(path, error) from error


def save_text(path: Path, text: str) -> None:
    """Write a text to ``path``, whole or not at all.

    Raises:
        RecordingError: The file cannot be written; the sentence says why.
    """
    try:
        # A recording may hold halves of characters, which no file can.
        write_atomically(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise _unwritable(path, error) from error


def check_writable(path: Path) -> None:
    """Find out before a long run whether ``path`` can be written; nothing is left behind.

    Raises:
        RecordingError: It cannot; the sentence says why.
    """
    try:
        handle, temporary, _ = _open_beside(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    os.close(handle)
    Path(temporary).unlink()


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside ``path`` and rename, so that readers see the old file or the new one.

    Raises:
        OSError: ``path`` is no file that may be written, or its folder is missing, read-only or
            full; ``path`` is then as it was.
    """
    handle, temporary, target = _open_beside(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _open_beside(path: Path) -> tuple[int, str, Path]:
    """Open a new file in the folder of ``path``.

    Returns:
        Its descriptor, its name, and the file that it shall replace: where ``path`` is a link,
        what that leads to, so that the link stays.

    Raises:
        OSError: Not writable; a device or a pipe is refused too, since renaming would remove it.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None:
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, "it is a folder; name a file in it")
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a device or a pipe; name a file")
        if not os.access(path, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    handle, temporary = tempfile.mkstemp(
        dir=target.parent, prefix=".kernel-explorer-", suffix=".part"
    )
    return handle, temporary, target


def _unwritable(path: Path, error: OSError) -> RecordingError:
    return RecordingError(f"{path} could not be written: {error.strerror or error}.")


def load_recording(path: Path) -> tuple[Run, ...]:
    """Read the runs of a recording.

    Raises:
        RecordingError: The file is missing, damaged, foreign or from a later version.
    """
    try:
        with path.open("rb") as file:
            # One byte more tells a longer file; some, such as /dev/zero, never end.
            packed = file.read(MOST_PLAIN_BYTES + 1)
    except OSError as error:
        raise RecordingError(f"{path} could not be read: {error.strerror or error}.") from error
    return parse_recording(packed, str(path))


def parse_recording(packed: bytes, name: str) -> tuple[Run, ...]:
    """Read the runs from a file's bytes; ``name`` is what the sentences call it.

    Raises:
        RecordingError: As :func:`load_recording`.
    """
    plain = _unpack(packed, name)
    if plain.count(b"{") + plain.count(b"[") > MOST_PARTS:
        raise RecordingError(
            f"{name} holds more than {MOST_PARTS:,} parts, which no recording does."
        )
    try:
        document = json.loads(plain)
    except (ValueError, RecursionError):
        raise RecordingError(f"{name} is not a recording: it holds no JSON.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RecordingError(f"{name} is not a recording of Kernel Explorer.")
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise RecordingError(f"{name} has no valid version number.")
    if version > VERSION:
        raise RecordingError(
            f"{name} was saved by a later release (version {version}; this one reads up to "
            f"{VERSION}); update Kernel Explorer to open it."
        )
    runs = document.get("runs")
    if not isinstance(runs, list):
        raise RecordingError(f"{name} is damaged: it has no list of runs.")
    try:
        loaded = tuple(from_plain(Run, run, f"runs[{i}]") for i, run in enumerate(runs))
    except DecodeError as error:
        raise RecordingError(f"{name} is damaged: {error}.") from None
    for i, run in enumerate(loaded):
        fault = first_fault(run)
        if fault is not None:
            raise RecordingError(f"{name} is damaged: runs[{i}]: {fault}.")
    return loaded


def _unpack(packed: bytes, name: str) -> bytes:
    is_packed = packed[:2] == b"\x1f\x8b"
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(packed, MOST_PLAIN_BYTES + 1) if is_packed else packed
    except zlib.error:
        raise RecordingError(f"{name} is damaged: it cannot be unpacked.") from None
    if len(plain) > MOST_PLAIN_BYTES:
        raise RecordingError(
            f"{name} holds more than {MOST_PLAIN_BYTES >> 20} MiB, which no recording does."
        )
    if is_packed and not unpacker.eof:
        raise RecordingError(f"{name} is damaged: it ends in the middle.")
    return plain
