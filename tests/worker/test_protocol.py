"""Messages survive the pipe, and nothing else passes for one."""

import json
from typing import get_args

import pytest

from explorer.model.codec import to_plain
from explorer.model.messages import (
    CeilingsMeasured,
    CeilingsRequest,
    Check,
    DoctorReport,
    DoctorRequest,
    GraphCaptured,
    GraphRequest,
    GroupingFound,
    GroupingRequest,
    Progress,
    Ready,
    Reply,
    Request,
    RequestDone,
    RequestFailed,
    RunFinished,
    RunRequest,
    Stage,
)
from explorer.model.run import Direction, FusionRefusal, RefusalReason
from explorer.worker.protocol import (
    ProtocolError,
    decode_reply,
    decode_request,
    encode,
    read_reply,
)
from tests.cli.fake_session import ABILITIES
from tests.fixtures_runs import GPU_GRAPH, H200, all_runs, eager_attention

REQUESTS: tuple[Request, ...] = (
    RunRequest(
        chain="attention",
        parameters={"seq_len": 4096, "dropout": 0.1, "mask": "none"},
        strategies=("eager", "compile:max-autotune"),
        direction=Direction.FORWARD_BACKWARD,
        seed=2**40,
        timing_s=0.25,
        measure_ceilings=False,
    ),
    GraphRequest(chain="attention"),
    GroupingRequest(chain="adam", parameters={"elements": 64}, device="cpu"),
    CeilingsRequest(device="cuda:1", force=True),
    DoctorRequest(),
)
assert H200.ceilings is not None
REPLIES: tuple[Reply, ...] = (
    Ready(abilities=ABILITIES),
    Progress(stage=Stage.TIMING, sentence="zwei\nZeilen – µs ×", fraction=0.5, strategy="eager"),
    Progress(stage=Stage.CAPTURE, sentence=""),
    GraphCaptured(graph=GPU_GRAPH, parameters={"dropout": 0}, estimate_bytes=1, device="cuda:0"),
    GroupingFound(
        chain="attention",
        parameters={"dropout": 0},
        device="cuda:0",
        plan="qk|scale+softmax|pv",
        refusals=(
            FusionRefusal(
                first="qk", second="scale", sentence="No.", raw="no", reason=RefusalReason.MATMUL
            ),
        ),
    ),
    *(RunFinished(run=run) for run in all_runs()),
    CeilingsMeasured(device="cuda:0", ceilings=H200.ceilings),
    DoctorReport(abilities=ABILITIES, checks=(Check(name="a", ok=False, sentence="b"),)),
    RequestFailed(sentence="No.", usage=True),
    RequestDone(),
)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda message: type(message).__name__)
def test_a_request_comes_through(request_: Request) -> None:
    line = encode(request_)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_request(line) == request_


@pytest.mark.parametrize("reply", REPLIES, ids=lambda message: type(message).__name__)
def test_a_reply_comes_through(reply: Reply) -> None:
    line = encode(reply)
    assert line.count(b"\n") == 1
    assert decode_reply(line) == reply


def test_every_kind_of_message_was_tried() -> None:
    assert {type(message) for message in REQUESTS} == set(get_args(Request))
    assert {type(message) for message in REPLIES} == set(get_args(Reply))


def test_a_reply_is_no_request_and_a_request_no_reply() -> None:
    with pytest.raises(ProtocolError, match="no message is called 'RequestDone'"):
        decode_request(encode(RequestDone()))
    with pytest.raises(ProtocolError, match="no message is called 'DoctorRequest'"):
        decode_reply(encode(DoctorRequest()))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", "not a message"),
        (b"hello\n", "not a message: b'hello"),
        (b"\xff\xfe\n", "not a message"),
        (b'{"type": "Progress", "body": ' + b"[" * 100_000, "not a message"),
        (b"[" * 100_000 + b"]" * 100_000, "not a message"),
        (b"null\n", "not a message"),
        (b"[1, 2]\n", "without a type"),
        (b'{"body": {}}\n', "without a type"),
        (b'{"type": 3}\n', "without a type"),
        (b'{"type": "Nothing", "body": {}}\n', "no message is called 'Nothing'"),
        (b'{"type": "RequestFailed", "body": {}}\n', "RequestFailed: sentence is missing"),
        (b'{"type": "RequestFailed"}\n', "RequestFailed should be an object, not nothing"),
        (
            b'{"type": "Progress", "body": {"stage": "tea", "sentence": ""}}\n',
            "Progress: stage is 'tea'; known are starting, capture",
        ),
    ],
)
def test_what_is_no_message_is_refused(line: bytes, words: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_reply(line)
    assert words in str(caught.value)


def test_half_a_surrogate_pair_comes_through() -> None:
    """A name that is no UTF-8 holds such, and cannot be encoded as UTF-8."""
    request = RunRequest(chain="attention \udc80")
    assert decode_request(encode(request)) == request


@pytest.mark.parametrize("line", [b"", b"hello", b'{"type":', b'{"type": "Nothing"}', b"\xff{}"])
def test_a_line_without_a_reply_is_passed_over(line: bytes) -> None:
    assert read_reply(line) is None


def test_a_reply_is_found_behind_a_print_without_an_end_of_line() -> None:
    assert read_reply(b"a banner\xff{}" + encode(RequestDone())) == RequestDone()


def test_a_run_that_cannot_be_read_is_a_failure_that_says_so() -> None:
    plain = to_plain(eager_attention())
    plain["timing"]["cold"]["median_us"] = None
    line = json.dumps({"type": "RunFinished", "body": {"run": plain}})
    assert read_reply(line.encode()) == RequestFailed(
        sentence="What the worker answered cannot be read: RunFinished: "
        "run.timing.cold.median_us should be float, not nothing."
    )


def test_a_step_that_cannot_be_read_is_passed_over() -> None:
    assert read_reply(b'{"type": "Progress", "body": {"stage": "tea", "sentence": ""}}') is None


def test_a_field_of_a_later_release_is_passed_over() -> None:
    line = json.dumps({"type": "RequestFailed", "body": {"sentence": "No.", "mood": "sour"}})
    assert decode_reply(line.encode()) == RequestFailed(sentence="No.")


def test_a_number_that_is_none_stays_out_of_the_json() -> None:
    line = encode(Progress(stage=Stage.TIMING, sentence="", fraction=float("nan")))
    assert b"NaN" not in line
    assert decode_reply(line) == Progress(stage=Stage.TIMING, sentence="")
