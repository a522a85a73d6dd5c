"""Somebody's own code on the command line: what names it, how it is called, what it consists of."""

from argparse import Namespace
from collections.abc import Sequence

from explorer.chains import find_chain
from explorer.chains.descriptor import Chain
from explorer.chains.own import canonical, is_file_alone, is_own, own_chain, read_name
from explorer.cli.table import Column, render, shortened
from explorer.cli.terminal import paragraphs, write_note
from explorer.model.errors import UsageError
from explorer.model.opgraph import OpGraph
from explorer.model.own_code import OwnCode
from explorer.model.run import Run

LINE_WIDTH = 60


def chosen_chain(options: Namespace) -> tuple[Chain, OwnCode | None]:
    """The chain that the options name, and how it is called if it is not built in.

    Raises:
        UsageError: There is no such chain or file, a text cannot be read, or an option is for the
            other kind.
    """
    if is_own(options.chain):
        read_name(options.chain).check_there()
        own = canonical(
            OwnCode(
                inputs=" ".join(options.input),
                init=" ".join(options.init),
                training=options.train,
            )
        )
        return own_chain(options.chain, own), own
    if is_file_alone(options.chain):
        raise UsageError(
            f"{options.chain} names no function or class; add one: {options.chain}:function."
        )
    chain = find_chain(options.chain)
    given = {"--input": options.input, "--init": options.init, "--train": options.train}
    for name, value in given.items():
        if value:
            raise UsageError(
                f"{name} is for one's own code, such as file.py:function; {chain.id} is built in "
                "and takes --set."
            )
    return chain, None


def announce(runs: Sequence[Run]) -> None:
    """Say which own code is about to be run again.

    Args:
        runs: Those that are to be measured again.

    Raises:
        UsageError: A file of theirs is not there, or a name is none.
    """
    for chain in dict.fromkeys(run.chain.name for run in runs if is_own(run.chain.name)):
        name = read_name(chain)
        name.check_there()
        kind = "file" if name.is_file else "module"
        write_note(f"The {kind} {name.where} is run, for {name.what} in it.")


def call_lines(run: Run) -> list[str]:
    """How own code is called, for the heading; nothing of a built-in chain."""
    own = run.chain.own
    if own is None:
        return []
    told = [
        f"--input: {own.inputs or 'as its example_inputs() says'}",
        f"--init: {own.init}" if own.init else "",
        "in training mode" if own.training else "",
    ]
    return [f"  {line}" for line in told if line]


def op_lines(run: Run, *, raw: bool = False) -> list[str]:
    """The ops with the lines they come from, and where the code breaks into pieces.

    Nothing of a built-in chain, whose ops a learner knows by their names.

    Args:
        run: Any of the work.
        raw: Whether torch's own words follow the reason of each graph break.
    """
    graph = run.graph
    lines = []
    if any(op.source_place for op in graph.ops):
        columns = [Column(title=title, is_text=True) for title in ("op", "operator", "at", "line")]
        rows: list[list[str]] = []
        for i, op in enumerate(graph.ops):
            if i and op.piece != graph.ops[i - 1].piece:
                rows.append([])
            line = shortened(op.source_line or "", LINE_WIDTH)
            rows.append([op.name, op.aten, op.source_place or "", line])
        lines += ["", *render(columns, rows)]
    return [*lines, *_break_lines(graph, raw=raw)]


def _break_lines(graph: OpGraph, *, raw: bool) -> list[str]:
    """How many pieces there are, and each place where the code breaks once."""
    if not graph.breaks:
        return []
    pieces = 1 + max((op.piece for op in graph.ops), default=0)
    places = list(dict.fromkeys(graph.breaks))
    count = "a graph break" if len(places) == 1 else f"graph breaks at {len(places)} places"
    said = f"in {pieces} pieces, with {count} between them" if pieces > 1 else f"with {count}"
    lines = ["", f"  captured {said}:"]
    for found in places:
        told = [f"{found.place or 'a place unknown'}: {found.reason}"]
        lines += paragraphs(told, "  ")
        if raw:
            lines += [f"      {line}" for line in found.raw.splitlines()]
    return lines
