"""The form for own code: what is said to each field, read from files that nobody runs."""

from pathlib import Path
from typing import Any

import pytest

from explorer.model.own_code import OwnCode
from explorer.ui.own_form import Field, OwnFields, check_fields

SOURCE = """
raise SystemExit("nobody runs this")

def example_inputs():
    return ()

class Block:
    pass

def _hidden():
    pass
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_a_form_that_can_be_opened(path: Path) -> None:
    fields = OwnFields(
        where=f" {path} ", what="Block", inputs="x=dtype[rows=8,w]", init="hidden=w=64",
        training=True,
    )  # fmt: skip
    checked = check_fields(fields)
    assert checked.is_ready
    assert checked.hints[Field.INPUTS] == "Parameters: rows=8, w=64, dtype=fp32."
    assert fields.chain == f"{path}:Block"
    assert fields.own == OwnCode(inputs="x=dtype[rows=8,w]", init="hidden=w=64", training=True)
    assert OwnFields.of(fields.chain, fields.own).chain == fields.chain


def test_names_are_read_from_the_file_without_running_it(path: Path) -> None:
    checked = check_fields(OwnFields(where=str(path)))
    assert checked.only_name == "Block"
    assert checked.missing == {Field.WHAT}
    assert not checked.is_ready
    assert checked.hints[Field.WHAT] == "The file defines Block."
    assert "the file's example_inputs() says what goes in" in checked.hints[Field.INPUTS]


def test_a_file_that_is_changed_is_read_anew(path: Path) -> None:
    check_fields(OwnFields(where=str(path)))
    path.write_text("def first(): ...\ndef second(): ...\n", encoding="utf-8")
    checked = check_fields(OwnFields(where=str(path), what="third"))
    assert checked.only_name == ""
    # A name may come about in other ways, so that is no error.
    assert checked.is_ready
    assert checked.hints[Field.WHAT] == (
        "third is not among what the file defines itself: first, second."
    )
    assert checked.hints[Field.INPUTS] == "The file has no example_inputs(): say what goes in."


@pytest.mark.parametrize("content", [b"def broken(:", b"\xff\xfe\x00", b"\x00", b"(" * 10_000])
def test_a_file_that_is_no_python_is_for_the_worker_to_tell(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    checked = check_fields(OwnFields(where=str(path), what="f"))
    assert checked.is_ready
    assert checked.hints[Field.WHAT].startswith("A function, or a class")


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"where": "gone.py"}, Field.WHERE, "gone.py is not there"),
        ({"where": "two words"}, Field.WHERE, "neither a file"),
        ({"where": "package.module", "what": "f()"}, Field.WHAT, "cannot be the name"),
        ({"inputs": "x=bf17[3]"}, Field.INPUTS, "This cannot be read at 'bf17[3]', character 3"),
        ({"inputs": "x=bf16[n,4]"}, Field.INPUTS, "n has no value"),
        ({"init": "x=bf16[3]"}, Field.INIT, "a constructor's argument cannot be a tensor"),
    ],
)
def test_says_what_is_wrong_beside_its_field(
    changes: dict[str, Any], field: Field, words: str
) -> None:
    checked = check_fields(OwnFields(**{"where": "package.module", "what": "f", **changes}))
    assert list(checked.errors) == [field]
    assert words in checked.errors[field]
    assert not checked.is_ready


def test_a_module_is_not_looked_for(tmp_path: Path) -> None:
    checked = check_fields(OwnFields(where="no.such.module", what="Class"))
    assert checked.is_ready
    assert checked.hints[Field.WHERE] == "A module; the worker imports it."


def test_the_home_folder_is_written_out(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setenv("HOME", str(path.parent))
    fields = OwnFields(where="~/net.py", what="Block")
    assert check_fields(fields).is_ready
    assert fields.chain == f"{path}:Block"
