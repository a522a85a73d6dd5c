"""Recordings: whole or not at all, byte for byte the same, and read without trust."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
from pathlib import Path

import pytest

from explorer import recording
from explorer.model.errors import RecordingError
from explorer.recording import (
    check_writable,
    load_recording,
    parse_recording,
    runs_to_plain,
    save_recording,
    write_atomically,
)
from tests.fixtures_runs import all_runs, eager_attention


def test_runs_come_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "runs.kx"
    save_recording(path, all_runs())
    assert load_recording(path) == all_runs()
    save_recording(path, ())
    assert load_recording(path) == ()


def test_the_same_runs_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        save_recording(tmp_path / name, all_runs())
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_it_is_compressed_json_with_format_and_version(tmp_path: Path) -> None:
    path = tmp_path / "runs.kx"
    save_recording(path, (eager_attention(),))
    document = json.loads(gzip.decompress(path.read_bytes()))
    assert document == json.loads(json.dumps(runs_to_plain((eager_attention(),))))
    assert (document["format"], document["version"]) == ("kernel-explorer", 1)
    assert document["runs"][0]["launches"][0]["duration_us"] == 319.0


def test_what_json_printed_can_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "printed.json"
    path.write_text(json.dumps(runs_to_plain((eager_attention(),))))
    assert load_recording(path) == (eager_attention(),)


def document(**changes: object) -> bytes:
    return json.dumps({**runs_to_plain((eager_attention(),)), **changes}).encode()


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (b"", "it holds no JSON"),
        (b"hello", "it holds no JSON"),
        (b"\x80\x81", "it holds no JSON"),
        (b"[" * 100_000, "it holds no JSON"),
        (b"[]", "is not a recording of Kernel Explorer"),
        (b'{"runs": []}', "is not a recording of Kernel Explorer"),
        (document(format="other"), "is not a recording of Kernel Explorer"),
        (document(version="1"), "no valid version number"),
        (document(version=True), "no valid version number"),
        (document(version=0), "no valid version number"),
        (document(version=2), "later release (version 2; this one reads up to 1); update"),
        (document(runs={}), "it has no list of runs"),
        (document(runs=[3]), "runs[0] should be an object, not a number"),
        (document(runs=[{}]), "runs[0].id is missing"),
        (gzip.compress(document())[:200], "it ends in the middle"),
        (gzip.compress(document())[:10] + b"\xff" * 50, "it cannot be unpacked"),
        (b"\x1f\x8b\x08", "it ends in the middle"),
    ],
    ids=range(17),
)
def test_what_is_damaged_or_foreign_is_refused_in_a_sentence(packed: bytes, words: str) -> None:
    with pytest.raises(RecordingError) as caught:
        parse_recording(packed, "a.kx")
    sentence = str(caught.value)
    assert sentence.startswith("a.kx ")
    assert sentence.endswith((".", "to open it."))
    assert words in sentence
    assert "\n" not in sentence


def test_every_cut_and_every_flipped_byte_is_refused_or_read() -> None:
    packed = gzip.compress(document(), mtime=0)
    for length in range(0, len(packed), 101):
        with pytest.raises(RecordingError):
            parse_recording(packed[:length], "a.kx")
    for place in range(0, len(packed), 101):
        flipped = bytearray(packed)
        flipped[place] ^= 0x10
        # Gzip's own check finds nearly all; what it lets through must still be a recording.
        try:
            assert parse_recording(bytes(flipped), "a.kx") == (eager_attention(),)
        except RecordingError:
            continue


def test_a_small_file_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_PLAIN_BYTES", 1 << 20)
    bomb = gzip.compress(b" " * (1 << 22))
    assert len(bomb) < 10_000
    for packed in (bomb, gzip.decompress(bomb)):
        with pytest.raises(RecordingError, match="holds more than 1 MiB, which no recording does"):
            parse_recording(packed, "a.kx")


def test_a_file_of_nothing_but_brackets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_PARTS", 1000)
    assert parse_recording(document(), "a.kx") == (eager_attention(),)
    for bomb in (b"[" + b"{}," * 1000 + b"{}]", b"[" * 1001):
        with pytest.raises(RecordingError, match="holds more than 1,000 parts, which no recording"):
            parse_recording(bomb, "a.kx")


def test_a_file_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_PLAIN_BYTES", 1 << 20)
    with pytest.raises(RecordingError, match=r"^/dev/zero holds more than 1 MiB"):
        load_recording(Path("/dev/zero"))


def test_nothing_is_saved_that_could_not_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MOST_PLAIN_BYTES", 1 << 10)
    with pytest.raises(RecordingError, match="6 runs are more than the 0 MiB"):
        save_recording(tmp_path / "a.kx", all_runs())
    assert os.listdir(tmp_path) == []


def test_any_text_comes_back(tmp_path: Path) -> None:
    """Half a surrogate pair, which a name that is no UTF-8 holds, cannot be encoded as such."""
    run = dataclasses.replace(eager_attention(), label="µ × \udc80 \0 \u2028")
    save_recording(tmp_path / "a.kx", (run,))
    assert load_recording(tmp_path / "a.kx") == (run,)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="could not be read: No such file or directory"):
        load_recording(tmp_path / "missing.kx")


def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.kx"
    save_recording(path, (eager_attention(),))
    before = path.read_bytes()

    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RecordingError, match=r"runs\.kx could not be written: No space left on"):
        save_recording(path, all_runs())
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["runs.kx"]


def test_an_interrupted_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.bin"
    write_atomically(path, b"old")

    def interrupt(_source: str, _target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_file_is_readable_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a.bin", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a.bin").stat().st_mode & 0o777 == 0o640


def test_whether_a_file_can_be_written_is_known_beforehand(tmp_path: Path) -> None:
    check_writable(tmp_path / "new.kx")
    old = tmp_path / "old.kx"
    old.write_bytes(b"x")
    check_writable(old)
    assert old.read_bytes() == b"x"
    for path, words in (
        (tmp_path / "no" / "a.kx", "No such file or directory"),
        (old / "a.kx", "Not a directory"),
        (tmp_path, "it is a folder"),
    ):
        with pytest.raises(RecordingError, match=words):
            check_writable(path)
    assert os.listdir(tmp_path) == ["old.kx"]


def test_a_device_or_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    """As root, renaming over /dev/null would do away with it for everyone."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(RecordingError, match="it is a device or a pipe; name a file"):
            check_writable(path)
    with pytest.raises(RecordingError, match="it is a device or a pipe; name a file"):
        save_recording(pipe, all_runs())
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_file_that_may_not_be_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.kx"
    path.touch()
    # Root may write anything, whatever the file's mode.
    monkeypatch.setattr(os, "access", lambda asked, mode: (asked, mode) != (path, os.W_OK))
    with pytest.raises(RecordingError, match="Permission denied"):
        save_recording(path, all_runs())
    assert path.read_bytes() == b""


def test_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "link.kx", tmp_path / "folder" / "target.kx"
    link.symlink_to(target)
    for _ in ("new", "old"):
        save_recording(link, all_runs())
        assert link.is_symlink()
        assert load_recording(target) == all_runs()
    assert os.listdir(tmp_path / "folder") == ["target.kx"]
    circle = tmp_path / "circle.kx"
    circle.symlink_to(circle)
    with pytest.raises(RecordingError, match="symbolic links"):
        save_recording(circle, all_runs())


def test_the_longest_name_there_is_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 252 + ".kx")
    check_writable(path)
    save_recording(path, all_runs())
    assert load_recording(path) == all_runs()
