"""What own code can do wrong, as one sentence that names the user's own line."""

from pathlib import Path

import pytest

from explorer.engine.own_code.errors import OwnCodeError
from explorer.engine.own_code.load import load_target
from explorer.model.errors import ExplorerError, UsageError
from tests.engine.own_code.helpers import FUNCTIONS, LAYERS, captured


@pytest.mark.parametrize(
    ("name", "inputs", "init", "said"),
    [
        ("nowhere.py:f", "x=fp32[4]", "", "nowhere.py is not there"),
        (f"{FUNCTIONS}:score", "x=fp32[4]", "", "has no 'score'; it has scores."),
        (f"{FUNCTIONS}:unlike_any", "x=fp32[4]", "", "has no 'unlike_any'; it has scores, swapped"),
        ("torch.nn:Unlike_any", "x=fp32[4]", "", "torch.nn has no 'Unlike_any'."),
        (f"{FUNCTIONS}:NOT_CODE", "x=fp32[4]", "", "it is of type int; name a"),
        (f"{FUNCTIONS}:Plain", "x=fp32[4]", "", "is a class, but no torch.nn.Module"),
        ("no_such_package.layers:Layer", "x=fp32[4]", "", "no_such_package is not installed"),
        ("torch.nowhere:Layer", "x=fp32[4]", "", "torch has no torch.nowhere"),
        (f"{FUNCTIONS}:scores", "x=fp32[4,4]", "", "scores needs w as well: --input 'x="),
        (f"{FUNCTIONS}:scores", "y=fp32[4]", "", "has no argument 'y'; it takes x, w, causal, sc"),
        (f"{FUNCTIONS}:scores", "", "", "is not known: give --input 'x=bf16[1024,1024] w="),
        (f"{LAYERS}:ViTLike", "x=fp32[4]", "width=8", "ViTLike needs heads: give --init 'heads="),
        (f"{LAYERS}:ViTLike", "x=fp32[4]", "size=8", "has no argument 'size'; its constructor"),
        (f"{LAYERS}:Configured", "x=fp32[4]", "size=8", "SmallConfig cannot be made from --init"),
        (f"{FUNCTIONS}:looped", "x=fp32[4]", "width=8", "and this is no class"),
    ],
)  # fmt: skip
def test_a_wrong_name_or_argument_is_a_wrong_usage(
    name: str, inputs: str, init: str, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        captured(name, inputs, init)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("function", "line", "said"),
    [
        ("raises", 'raise ValueError(f"no {y.dim()} dimensions, please")',
         "raises ValueError: no 2 dimensions, please."),
        ("leaves", "sys.exit(3)", "ends the program with sys.exit(3)"),
        ("by_table", "return x @ TABLE", "raises RuntimeError: mat1 and mat2 shapes"),
    ],
)  # fmt: skip
def test_what_the_code_raises_is_told_by_its_line(function: str, line: str, said: str) -> None:
    with pytest.raises(OwnCodeError) as refused:
        captured(f"{FUNCTIONS}:{function}", "x=fp32[4,3]")
    sentence = str(refused.value)
    number = Path(FUNCTIONS).read_text().splitlines().index(f"    {line}") + 1
    assert sentence.startswith(f"functions.py:{number} ({line}) ")
    assert said in sentence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\ny = (\n", "own.py:2 (y = () is not Python: '(' was never closed."),
        ("import sys\nsys.exit('no GPU')\n", "own.py:2 (sys.exit('no GPU')) ends the program"),
        ("x = 1\nx / 0\n", "own.py:2 (x / 0) raises ZeroDivisionError: division by zero."),
        (
            "x = '\0'\n",
            "An error while loading own.py: it is not Python: source code string cannot",
        ),
        ("import not_there_at_all\n", "own.py:1 (import not_there_at_all) raises ModuleNotFound"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told_by_its_line(
    text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "own.py"
    file.write_text(text)
    with pytest.raises(ExplorerError) as refused:
        load_target(f"{file}:f")
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("return torch.ones(2), torch.ones(2)", "than f takes (too many positional arguments)"),
        ("return {'x': torch.ones(2), 'y': 1}", "unexpected keyword argument 'y'); it takes x."),
        ("yield torch.ones(2)", "is a generator or async, which gives nothing when called"),
        ("return torch.ones(2, 2).to_sparse()", "gives x as a sparse, quantized or nested tensor"),
    ],
)
def test_example_inputs_that_do_not_fit_are_told(returned: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    example = f"def example_inputs():\n    {returned}\n"
    file.write_text(f"import torch\n{example}\ndef f(x):\n    return x * 2\n")
    with pytest.raises(UsageError) as refused:
        captured(f"{file}:f")
    assert str(refused.value).startswith(f"example_inputs() of {file} ")
    assert said in str(refused.value)


def test_a_module_without_gradients_has_no_backward_pass() -> None:
    with pytest.raises(UsageError, match="nothing to differentiate"):
        captured(f"{FUNCTIONS}:counted", "ids=i64[4]<10 keep=bool[4]", backward=True)


def test_a_file_is_loaded_anew_with_what_lies_beside_it(tmp_path: Path) -> None:
    file, beside = tmp_path / "own.py", tmp_path / "beside_own.py"
    file.write_text("from beside_own import N\ndef f(x):\n    return N\n")
    beside.write_text("N = 1\n")
    assert load_target(f"{file}:f").found(0) == 1
    beside.write_text("N = 2\n")
    assert load_target(f"{file}:f").found(0) == 2
    file.write_text("from beside_own import N\ndef f(x):\n    return -N\n")
    assert load_target(f"{file}:f").found(0) == -2


def test_a_file_of_a_package_imports_relatively(tmp_path: Path) -> None:
    inner = tmp_path / "outer_own" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").touch()
    (inner / "__init__.py").touch()
    (inner.parent / "one.py").write_text("ONE = 1\n")
    (inner / "two.py").write_text("TWO = 2\n")
    file = inner / "file.py"
    file.write_text(
        "from ..one import ONE\nfrom .two import TWO\ndef f(x):\n    return ONE + TWO\n"
    )
    assert load_target(f"{file}:f").found(0) == 3
    (inner / "two.py").write_text("TWO = 3\n")
    assert load_target(f"{file}:f").found(0) == 4


def test_an_attribute_of_a_class_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("class A:\n    @staticmethod\n    def f(x):\n        return x\n")
    assert load_target(f"{file}:A.f").found(7) == 7
