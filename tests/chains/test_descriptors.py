"""What the built-in chains say of themselves, and what they refuse."""

import itertools
from collections.abc import Iterator

import pytest

from explorer.chains import CHAINS, find_chain
from explorer.chains.descriptor import Chain
from explorer.model.device import DeviceKind
from explorer.model.errors import UsageError
from explorer.model.run import Scalar
from explorer.model.units import BYTES_PER_ELEMENT

ATTENTION = find_chain("attention")
EVERY_CHAIN = pytest.mark.parametrize("chain", CHAINS.values(), ids=lambda chain: chain.id)


@EVERY_CHAIN
@pytest.mark.parametrize("kind", DeviceKind)
def test_the_defaults_lie_in_their_own_ranges(chain: Chain, kind: DeviceKind) -> None:
    values = chain.resolve({}, kind)
    assert list(values) == [parameter.name for parameter in chain.parameters]
    for name, value in values.items():
        parsed = chain.parameter(name).parse(value)
        assert parsed == value
        assert type(parsed) is type(value)
        assert chain.parameter(name).parse(str(value)) == value


def every_choice(chain: Chain) -> Iterator[dict[str, object]]:
    """All settings of a chain's choices."""
    choices = [p for p in chain.parameters if p.kind == "choice"]
    for values in itertools.product(*(p.choices for p in choices)):
        yield {p.name: value for p, value in zip(choices, values, strict=True)}


@EVERY_CHAIN
def test_names_are_unique_and_told(chain: Chain) -> None:
    names = [op.name for op in chain.all_ops]
    assert len(set(names)) == len(names)
    for settings in every_choice(chain):
        ops = chain.ops(chain.resolve(settings, DeviceKind.CPU))
        assert len({op.name for op in ops}) == len(ops)
        outputs = [output for op in ops if not op.in_place for output in op.outputs]
        assert len(set(outputs)) == len(outputs)
    parameters = [parameter.name for parameter in chain.parameters]
    assert len(set(parameters)) == len(parameters)
    assert all(parameter.sentence.endswith(".") for parameter in chain.parameters)
    assert chain.look_at.endswith(".")
    assert chain.title
    assert chain.formula


@EVERY_CHAIN
def test_what_an_op_is_skipped_for_exists(chain: Chain) -> None:
    for parameter, value, op in chain.skipped_ops:
        assert chain.parameter(parameter).parse(value) == value
        assert op in [each.name for each in chain.all_ops]


@pytest.mark.parametrize(
    ("chain", "deciding"),
    [
        ("attention", {"mask", "dropout"}),
        ("elementwise", {"k"}),
        ("rmsnorm", set()),
        ("rmsnorm-fp8", {"dtype", "scale"}),
        ("adam-list", {"layers", "hidden", "dtype", "optimizer", "implementation"}),
    ],
)
def test_which_parameters_decide_on_the_ops(chain: str, deciding: set[str]) -> None:
    assert find_chain(chain).deciding == deciding


@EVERY_CHAIN
def test_dtypes_have_a_size(chain: Chain) -> None:
    for parameter in chain.parameters:
        if parameter.name == "dtype":
            assert set(parameter.choices) <= set(BYTES_PER_ELEMENT)


def test_attention_is_as_the_contract_says() -> None:
    gpu = ATTENTION.resolve({}, DeviceKind.CUDA)
    assert [gpu[n] for n in ("batch", "heads", "seq_len", "head_dim", "dtype", "mask")] == [
        2, 16, 4096, 64, "bf16", "additive",
    ]  # fmt: skip
    assert [op.name for op in ATTENTION.ops(gpu)] == [
        "qk", "scale", "mask", "softmax", "dropout", "pv",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        ({"mask": "none"}, {"mask"}),
        ({"mask": "causal"}, set()),
        ({"dropout": "0"}, {"dropout"}),
        ({"dropout": 0.0, "mask": "none"}, {"dropout", "mask"}),
        ({"dropout": "0.5"}, set()),
    ],
)
def test_some_values_take_an_op_out(settings: dict[str, object], left_out: set[str]) -> None:
    values = ATTENTION.resolve(settings, DeviceKind.CPU)
    kept = [op.name for op in ATTENTION.ops(values)]
    assert kept == [op.name for op in ATTENTION.all_ops if op.name not in left_out]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"seq_len": "128"}, {"seq_len": 128}),
        ({"seq_len": 128.0}, {"seq_len": 128}),
        ({"seq_len": "1e3"}, {"seq_len": 1000}),
        ({"seq_len": 1_048_576}, {"seq_len": 1_048_576}),
        ({"dropout": 0}, {"dropout": 0.0}),
        ({"dropout": "0.999"}, {"dropout": 0.999}),
        ({"dtype": "fp16", "mask": "causal"}, {"dtype": "fp16", "mask": "causal"}),
    ],
)
def test_settings_are_read_from_text_and_numbers(
    settings: dict[str, object], expected: dict[str, Scalar]
) -> None:
    values = ATTENTION.resolve(settings, DeviceKind.CPU)
    for name, value in expected.items():
        assert values[name] == value
        assert type(values[name]) is type(value)
    untouched = {n: v for n, v in values.items() if n not in expected}
    assert untouched.items() <= ATTENTION.resolve({}, DeviceKind.CPU).items()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("seq_len", 0, "seq_len=0 is out of range: it takes 1 to 1,048,576"),
        ("seq_len", 1_048_577, "is out of range"),
        ("seq_len", "", "is not a whole number"),
        ("seq_len", "1.5", "seq_len=1.5 is not a whole number; it takes 1 to 1,048,576"),
        ("seq_len", True, "is not a whole number"),
        ("seq_len", None, "is not a whole number"),
        ("seq_len", "inf", "is not a whole number"),
        ("seq_len", float("nan"), "is not a whole number"),
        ("seq_len", "1_0", "seq_len=1_0 is not a whole number"),
        ("seq_len", "\u0663", "seq_len=\u0663 is not a whole number"),
        ("seq_len", "0x10", "is not a whole number"),
        ("dropout", 1, "dropout=1 is out of range: it takes 0 to below 1"),
        ("dropout", -0.1, "is out of range"),
        ("dropout", "nan", "dropout=nan is not a number"),
        ("dropout", [], "is not a number"),
        ("dtype", "fp64", "dtype=fp64 is not one of fp32, tf32, bf16, fp16"),
        ("dtype", 3, "dtype=3 is not one of"),
        ("mask", None, "mask=None is not one of additive, causal, none"),
        ("color", 1, "attention has no parameter 'color'; it has batch, heads,"),
    ],
)
def test_what_is_out_of_range_is_refused_with_the_range(
    name: str, value: object, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        ATTENTION.resolve({name: value}, DeviceKind.CPU)
    assert words in str(caught.value)


def test_an_unknown_chain_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="There is no chain 'soup'; known chains: attention"):
        find_chain("soup")
