"""The text of one's own code's arguments: what it means, and what is said of one that is wrong."""

import random
import string

import pytest

from explorer.chains.input_parser import DEEPEST, LARGEST_INTEGER, parse
from explorer.chains.input_text import (
    DTYPES,
    LARGEST_SIZE,
    Argument,
    BoundDtype,
    BoundTensor,
    DtypeText,
    InputText,
    ListText,
    Size,
    Symbol,
    TensorText,
    Value,
    bound,
    parameters_of,
    text,
)
from explorer.model.device import DeviceKind
from explorer.model.errors import UsageError

EXAMPLE = (
    "x=bf16[16384,4096] ids=i64[1,128]<32000 pair=(bf16[8,64],bf16[8,64]) causal=True eps=1e-6 "
    "mode='tanh' y=None"
)


def read(source: str) -> InputText:
    return parse(source, "--input")


def value_of(source: str) -> Value:
    (argument,) = read(f"x={source}").arguments
    return argument.value


def complaint(source: str, *, tensors: bool = True) -> str:
    with pytest.raises(UsageError) as raised:
        parse(source, "--input", tensors=tensors)
    return str(raised.value)


def outcome(source: str) -> InputText | str:
    try:
        return read(source)
    except UsageError as error:
        return str(error)


def test_reads_every_kind_of_value_that_the_command_line_promises() -> None:
    pair = TensorText("bf16", (8, 64))
    assert read(EXAMPLE).arguments == (
        Argument("x", TensorText("bf16", (16384, 4096))),
        Argument("ids", TensorText("i64", (1, 128), 32000)),
        Argument("pair", (pair, pair)),
        Argument("causal", True),
        Argument("eps", 1e-6),
        Argument("mode", "tanh"),
        Argument("y", None),
    )


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("fp32[]", TensorText("fp32", ())),
        ("bool[3]", TensorText("bool", (3,))),
        ("fp32[ 2 , 3 ]", TensorText("fp32", (2, 3))),
        ("fp32[2,3,]", TensorText("fp32", (2, 3))),
        ("dtype[rows=1024,n]", TensorText(None, (Symbol("rows", 1024), Symbol("n")))),
        ("i32[4]<vocab=100", TensorText("i32", (4,), Symbol("vocab", 100))),
        ("bf16", DtypeText("bf16")),
        ("dtype", DtypeText(None)),
        ("width", Symbol("width")),
        ("width=512", Symbol("width", 512)),
        ("()", ()),
        ("(1,)", (1,)),
        ("(1)", 1),
        ("('a,')", "a,"),
        ("( 1 , (2, 3) )", (1, (2, 3))),
        ("[]", ListText(())),
        ("[1, [fp32[2]]]", ListText((1, ListText((TensorText("fp32", (2,)),))))),
        ("False", False),
        ("-3", -3),
        ("+3", 3),
        ("3.", 3.0),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        (str(LARGEST_INTEGER), LARGEST_INTEGER),
        (f"fp32[{LARGEST_SIZE}]", TensorText("fp32", (LARGEST_SIZE,))),
        ("''", ""),
        ('"it\'s"', "it's"),
        (r"'a \'b\' \\ \n\t'", "a 'b' \\ \n\t"),
        ("'Größe 大'", "Größe 大"),
    ],
)
def test_reads_a_value(source: str, value: Value) -> None:
    found = value_of(source)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "source",
    ["a=1 b=2", " a = 1   b= 2 ", "a=1,b=2", "a=1, b=2", "a=1 , b=2", "a=1\nb=2\n", "a=1\tb=2,"],
)
def test_spaces_and_commas_separate_arguments(source: str) -> None:
    assert text(read(source)) == "a=1 b=2"


def test_nothing_is_no_arguments() -> None:
    assert read("") == read("  \n") == InputText()
    assert text(InputText()) == ""


def test_a_name_may_be_in_any_script() -> None:
    assert read("größe=3").arguments == (Argument("größe", 3),)


def _random_size(chance: random.Random) -> Size:
    kinds: list[Size] = [
        chance.randint(1, LARGEST_SIZE),
        Symbol(chance.choice("abc")),
        Symbol(chance.choice("abc"), chance.randint(1, 99)),
    ]
    return chance.choice(kinds)


def _random_value(chance: random.Random, depth: int) -> Value:
    items = tuple(
        _random_value(chance, depth - 1) for _ in range(chance.randint(0, 3) * (depth > 0))
    )
    letters = string.printable + "äß大\u2028'\\\""
    integers = chance.random() < 0.3
    kinds: list[Value] = [
        TensorText(
            chance.choice(("i32", "i64")) if integers else chance.choice((None, *DTYPES)),
            tuple(_random_size(chance) for _ in range(chance.randint(0, 4))),
            _random_size(chance) if integers else None,
        ),
        DtypeText(chance.choice((None, *DTYPES))),
        Symbol("rows", 7),
        ListText(items),
        items,
        None,
        chance.random() < 0.5,
        chance.randint(-LARGEST_INTEGER, LARGEST_INTEGER),
        chance.uniform(-1, 1) * 10.0 ** chance.randint(-300, 300),
        "".join(chance.choice(letters) for _ in range(chance.randint(0, 8))),
    ]
    return chance.choice(kinds)


@pytest.mark.parametrize("seed", range(200))
def test_what_is_written_reads_back_the_same(seed: int) -> None:
    chance = random.Random(seed)
    inputs = InputText(tuple(Argument(f"arg{i}", _random_value(chance, depth=3)) for i in range(5)))
    written = text(inputs)
    assert read(written) == inputs
    assert text(read(written)) == written


@pytest.mark.parametrize("seed", range(200))
def test_a_text_with_a_slip_is_read_or_refused_in_one_sentence(seed: int) -> None:
    chance = random.Random(seed)
    source = list(EXAMPLE)
    for _ in range(3):
        source[chance.randrange(len(source))] = chance.choice("[](),='\"<x1 \\é\n")
    found = outcome("".join(source))
    if isinstance(found, str):
        assert found.startswith("--input cannot be read at ")
        assert found.endswith(".")
        assert "\n" not in found
    else:
        assert read(text(found)) == found


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("x", ("at its end", "expected = and a value after x")),
        ("=3", ("at '=3', character 1", "expected an argument")),
        ("x=", ("at its end", "expected a value")),
        ("x=bf17[3]", ("at 'bf17[3]', character 3", "bf17 is no dtype", "bf16")),
        ("x=bf16[3", ("at its end", "expected , or ]")),
        ("x=bf16[3;4]", ("at ';4]'", "expected , or ]")),
        ("x=bf16[-3]", ("at '-3]'", "a size is from 1 to")),
        ("x=bf16[0]", ("a size is from 1 to",)),
        ("x=bf16[3.5]", ("at '.5]'", "expected , or ]")),
        (f"x=bf16[{'9' * 9000}]", ("character 8", "a size is from 1 to 1,099,511,627,776")),
        ("x=bf16[rows=]", ("expected a whole number, the default of rows",)),
        ("x=bf16[rows=0]", ("the default of rows is from 1 to",)),
        ("x=bf16[dtype]", ("dtype is a word of its own",)),
        ("x=bf16[None]", ("None is a word of its own",)),
        ("x=bf16[4]<9", ("at '<9'", "an upper bound is for whole numbers, i32 and i64, not bf16")),
        ("x=i64[4]<", ("expected an upper bound",)),
        ("x=i64[4]<0", ("an upper bound is from 1 to",)),
        ("x=(1", ("expected , or )",)),
        ("x=(1 2)", ("at '2)'", "expected , or )")),
        ("x=[,]", ("expected a value",)),
        ("x=" + "(" * 5000, (f"at most {DEEPEST} tuples and lists",)),
        ("x='abc", ("has no closing '",)),
        ("x='a\\", ("a backslash is written twice",)),
        (r"x='\d'", ("a backslash is written twice",)),
        ("x=1_000", ("at '_000'", "expected a space before the next argument")),
        ("x=٣", ("expected a value",)),
        ("x=1e999", ("too large for 64 bits",)),
        ("x=9223372036854775808", ("a whole number is at most",)),
        (f"x={'9' * 9000}", ("a whole number is at most",)),
        ("x=1 x=2", ("at 'x=2', character 5", "x stands there already")),
        ("x=1 *", ("expected an argument",)),
        ("x=bf16[4]y=3", ("at 'y=3'", "expected a space")),
    ],
)
def test_says_where_a_text_is_wrong_and_what_is_expected(
    source: str, parts: tuple[str, ...]
) -> None:
    sentence = complaint(source)
    assert len(sentence) < 220
    for part in parts:
        assert part in sentence


def test_a_constructor_takes_no_tensor() -> None:
    assert "cannot be a tensor" in complaint("x=1 weight=bf16[3]", tensors=False)
    assert parse("x=1 dtype=bf16 n=w=3", "--init", tensors=False).arguments == (
        Argument("x", 1),
        Argument("dtype", DtypeText("bf16")),
        Argument("n", Symbol("w", 3)),
    )


def test_symbols_become_parameters() -> None:
    inputs = read("x=dtype[rows=1024,width] ids=i64[rows]<vocab=100 pair=(dtype, [heads=4])")
    init = parse("hidden_size=width=512", "--init", tensors=False)
    parameters = parameters_of(inputs, init)
    assert [(each.name, each.kind) for each in parameters] == [
        ("rows", "int"), ("width", "int"), ("vocab", "int"), ("heads", "int"), ("dtype", "choice"),
    ]  # fmt: skip
    assert [each.default(DeviceKind.CPU) for each in parameters] == [1024, 512, 100, 4, "fp32"]
    assert parameters[-1].default(DeviceKind.CUDA) == "bf16"
    assert parameters[0].parse("77") == 77
    with pytest.raises(UsageError, match="out of range"):
        parameters[0].parse("0")


def test_a_text_without_symbols_has_no_parameters() -> None:
    assert parameters_of(read(EXAMPLE)) == ()


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("x=bf16[rows,4]", "rows has no value: write rows=1024"),
        ("mode=tanh", "'tanh' in quotes"),
        ("x=bf16[n=2] y=bf16[n=3]", "n has two defaults, 2 and 3"),
    ],
)
def test_refuses_a_symbol_without_a_value(source: str, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        parameters_of(read(source))


def test_a_default_may_stand_twice_if_it_is_the_same() -> None:
    (parameter,) = parameters_of(read("x=bf16[n=2] y=bf16[n=2]"))
    assert parameter.cpu_default == 2


def test_binds_symbols_to_values() -> None:
    inputs = read(
        "x=dtype[rows=8,64] ids=i64[rows]<v=9 kinds=[bf16, dtype] n=rows pair=(fp16[2], None) s='n'"
    )
    assert bound(inputs, {"rows": 3, "v": 5, "dtype": "fp16"}) == {
        "x": BoundTensor("fp16", (3, 64)),
        "ids": BoundTensor("i64", (3,), 5),
        "kinds": [BoundDtype("bf16"), BoundDtype("fp16")],
        "n": 3,
        "pair": (BoundTensor("fp16", (2,)), None),
        "s": "n",
    }
