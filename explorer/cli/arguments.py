"""The command line's grammar: every option, read and checked as far as text alone allows."""

import argparse
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from explorer import __version__
from explorer.cli.terminal import PROGRAM
from explorer.model.errors import UsageError

BUILT_VIEWS = ("window", "scene", "timeline", "roofline", "table", "graph", "sweep")
VIEWS = (*BUILT_VIEWS, "heartbeat", "comparison")
BUILT_FORMATS = (".png",)
TABLE_SUFFIX = ".csv"
LATER_FORMATS = (".svg", ".pdf", ".gif", ".mp4", ".webp", ".html", ".json")
LEAST_SIDE_PX, LARGEST_SIDE_PX = 16, 16_384
MOST_SEED = 2**63 - 1
# A micro sign and a Greek mu look alike, and keyboards have either.
_UNITS_US = {"": 1.0, "us": 1.0, "µs": 1.0, "\u03bcs": 1.0, "ms": 1e3, "s": 1e6}


class Parser(argparse.ArgumentParser):
    """A parser that leaves the telling of a mistake to its caller: one sentence, no usage text.

    Options are written out: what is short for one option today may fit two tomorrow.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f"{message.rstrip('.')}; see {self.prog} --help.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Width and height in pixels."""

    width: int
    height: int


def read_size(text: str) -> Size:
    """``1440x900``."""
    found = re.fullmatch(r"([0-9]{1,9})[x×]([0-9]{1,9})", text)
    sides = [int(side) for side in found.groups()] if found else []
    if not sides or not all(LEAST_SIDE_PX <= side <= LARGEST_SIDE_PX for side in sides):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size such as 1440x900, each side from {LEAST_SIDE_PX} to "
            f"{LARGEST_SIDE_PX}"
        )
    return Size(width=sides[0], height=sides[1])


def read_scale(text: str) -> float:
    """A factor from 0.1 to 8."""
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0.1 <= factor <= 8:
        raise argparse.ArgumentTypeError(f"{text!r} is no factor from 0.1 to 8")
    return factor


def read_time_us(text: str) -> float:
    """A moment of the run, in microseconds unless a unit is given: ``350``, ``1.2ms``."""
    found = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+) *(us|µs|μs|ms|s|)", text)
    time_us = float(found[1]) * _UNITS_US[found[2]] if found else math.inf
    if not math.isfinite(time_us):
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 350us or 1.2ms")
    return time_us


def read_setting(text: str) -> tuple[str, str]:
    """``name=value``."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"{text!r} should be name=value")
    return name.strip(), value.strip()


def read_device(text: str) -> str:
    """``auto``, ``cpu``, ``cuda`` or ``cuda:N``."""
    if re.fullmatch(r"auto|cpu|cuda(:(0|[1-9][0-9]{0,2}))?", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not auto, cpu, cuda or cuda:N")
    return text


def read_seed(text: str) -> int:
    """A whole number that fits the generators of every device."""
    if re.fullmatch(r"[0-9]{1,19}", text) is None or int(text) > MOST_SEED:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {MOST_SEED}")
    return int(text)


def read_share(text: str) -> float:
    """A percentage such as ``1%``, as a share: 0.01."""
    found = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?|\.[0-9]{1,6})%", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage such as 1% or 0.5%")
    return float(found[1]) / 100


def make_parser() -> Parser:
    """The whole grammar."""
    parser = Parser(
        prog=PROGRAM,
        description="See where the bytes go when operators are fused. Without a command the "
        "window opens; without a display the attention chain runs and a picture is written.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    _add_worker_python(parser, default=None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    _add_chains(commands)
    _add_run(commands)
    _add_export(commands)
    _add_show(commands)
    _add_check(commands)
    _add_doctor(commands)
    worker = commands.add_parser("worker", help="the worker's loop on stdin and stdout")
    worker.add_argument("--session", help=argparse.SUPPRESS)
    return parser


def _add_worker_python(
    parser: argparse.ArgumentParser, default: str | None = argparse.SUPPRESS
) -> None:
    # A subcommand's default would overwrite what stood before the subcommand.
    parser.add_argument(
        "--worker-python",
        type=Path,
        default=default,
        metavar="PATH",
        help="Python with the torch to measure (default: the active virtual environment, if it "
        "has torch)",
    )


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", default="auto", type=read_device, metavar="D", help="auto, cpu, cuda, cuda:N"
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON alone on stdout")


def _add_chains(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = commands.add_parser("chains", help="what can be picked")
    parser.add_argument("name", nargs="?", metavar="NAME", help="show its parameters and ops")
    _add_json(parser)


def _add_run(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = commands.add_parser("run", help="measure a chain")
    parser.add_argument(
        "chain",
        metavar="CHAIN",
        help="as listed by: kernel-explorer chains; or one's own code, path/to/file.py:function or "
        "package.module:Class, which is run",
    )
    _add_own(parser)
    parser.add_argument(
        "--strategy",
        action="append",
        metavar="S",
        help="eager, compile, compile:MODE, cudagraph, sdpa, plan:scale+mask|softmax (+ within a "
        "kernel, | between kernels), plan:each, plan:inductor, plan:all, plan:* for every plan; "
        "may be repeated (default: eager and compile)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=read_setting,
        metavar="NAME=VALUE",
        dest="settings",
        help="a parameter of the chain; may be repeated",
    )
    parser.add_argument(
        "--backward",
        action="store_true",
        help="forward, then backward from gradients of the results, as one call",
    )
    _add_device(parser)
    _add_worker_python(parser)
    parser.add_argument(
        "--seed", default=0, type=read_seed, metavar="N",
        help="of the inputs and of what is drawn at random (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="NAME=RANGE",
        help="run every strategy at each value of a parameter: seq_len=512:8192:x2 (times 2), "
        "rows=1000:5000:+1000 (plus 1000), dtype=fp32,bf16 (a list)",
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write a recording (.kx)")
    _add_json(parser)


def _add_own(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="TEXT",
        help="one's own code's arguments: 'x=bf16[rows=1024,4096] ids=i64[128]<32000 causal=True'; "
        "rows is a parameter then (default: the file's example_inputs())",
    )
    parser.add_argument(
        "--init",
        action="append",
        default=[],
        metavar="TEXT",
        help="one's own class's constructor's arguments: 'hidden_size=512 bias=False'",
    )
    parser.add_argument(
        "--train", action="store_true", help="one's own module in training mode (default: eval)"
    )


def _add_export(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = commands.add_parser(
        "export", help="make a picture or a table of a recording, or a module of its fusion plan"
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a recording (.kx)")
    parser.add_argument(
        "out",
        type=Path,
        metavar="OUT",
        help="a .png file, a .csv file for a table, or a .py file for a fusion plan",
    )
    parser.add_argument(
        "--plan", metavar="TEXT", help="which plan goes into the .py file (default: the last)"
    )
    parser.add_argument(
        "--view",
        metavar="V",
        help=f"{', '.join(BUILT_VIEWS)} (default: window); of a .csv table, a row a launch, or "
        "sweep, a row a run of a parameter sweep (default: table)",
    )
    parser.add_argument(
        "--size", default=Size(width=1440, height=900), type=read_size, metavar="WxH",
        help="of the layout, in pixels (default: 1440x900)",
    )  # fmt: skip
    parser.add_argument(
        "--scale", default=1.0, type=read_scale, metavar="F", help="pixels a pixel of the size"
    )
    parser.add_argument(
        "--theme", default="dark", choices=("dark", "light"), help="of the picture (default: dark)"
    )
    parser.add_argument(
        "--at", type=read_time_us, metavar="T", help="moment of the run: 350us, 1.2ms"
    )
    parser.add_argument("--duration", metavar="S", help=argparse.SUPPRESS)
    parser.add_argument("--fps", metavar="N", help=argparse.SUPPRESS)


def _add_show(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = commands.add_parser("show", help="the table of a recording")
    parser.add_argument("file", type=Path, metavar="FILE", help="a recording (.kx)")
    parser.add_argument("--plan", metavar="TEXT", help="only the runs of this fusion plan")
    parser.add_argument(
        "--raw", action="store_true", help="the compiler's own words on what it did not fuse"
    )
    _add_json(parser)


def _add_check(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = commands.add_parser(
        "check", help="measure a recording's fusion plans again; fails where one got worse"
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a recording (.kx)")
    parser.add_argument(
        "--bytes", default=0.01, type=read_share, metavar="P%",
        help="how much more a run may read and write (default: 1%%)",
    )  # fmt: skip
    parser.add_argument(
        "--time", default=0.03, type=read_share, metavar="P%",
        help="how much longer it may take on the same device (default: 3%%)",
    )  # fmt: skip
    _add_device(parser)
    _add_worker_python(parser)
    _add_json(parser)


def _add_doctor(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = commands.add_parser("doctor", help="what this machine can measure")
    _add_worker_python(parser)
    _add_json(parser)
