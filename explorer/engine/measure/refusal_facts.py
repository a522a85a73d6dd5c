"""Why two ops of one compiled graph are apart: what became of them, and what was said."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from explorer.engine.measure.fusion_log import NodeKind, ScheduledNode
from explorer.engine.measure.loop_sizes import loops_differ, sizes_of, spoken
from explorer.engine.measure.observe_compile import ModuleNotes
from explorer.engine.measure.refusal_messages import UNKNOWN, Line, Meaning, meaning_of, read_line
from explorer.model.opgraph import Op, OpKind
from explorer.model.run import RefusalReason

_SOFTMAX = ("_softmax", "_safe_softmax", "_log_softmax")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why two ops are apart.

    Attributes:
        reason: The kind.
        sentence: For a learner.
        raw: What the compiler said about them, empty where it said nothing.
        is_vague: Any other explanation says more.
    """

    reason: RefusalReason
    sentence: str
    raw: str = ""
    is_vague: bool = False


@dataclass(frozen=True)
class ScheduledGraph:
    """One compiled graph: its scheduler's nodes and the ops that they are of.

    Attributes:
        nodes: In the order in which they run.
        ops_of: Names of the ops that a scheduler's node computes, by its name.
        value_of: The op whose result, or a step of it, a node stores, by the node's name.
        steps: What a node's value is called, e.g. ``amax``, by the node's name.
        lines: What the log said.
        ops: The chain's, by name.
    """

    nodes: tuple[ScheduledNode, ...]
    ops_of: dict[str, frozenset[str]]
    value_of: dict[str, str]
    steps: dict[str, str]
    lines: tuple[Line, ...]
    ops: Mapping[str, Op]

    @staticmethod
    def of(
        notes: ModuleNotes, node_ops: Mapping[tuple[str, str], str], ops: Mapping[str, Op]
    ) -> "ScheduledGraph":
        """The graph of a module whose fusion was noted.

        Args:
            notes: Of the module.
            node_ops: Op by module key and name of a node of the graph.
            ops: The chain's ops by name.
        """
        scheduled = notes.fusion.scheduled if notes.fusion is not None else {}
        lines = notes.fusion.lines if notes.fusion is not None else ()
        value_of, steps = {}, {}
        for name, node in scheduled.items():
            op = node_ops.get((notes.key, node.value or ""))
            if op is not None and node.value in notes.nodes:
                value_of[name] = op
                steps[name] = notes.nodes[node.value].target.split(".")[1:2][0]
        return ScheduledGraph(
            nodes=tuple(scheduled.values()),
            ops_of={
                name: frozenset(
                    node_ops[notes.key, inner]
                    for inner in node.nodes
                    if (notes.key, inner) in node_ops
                )
                for name, node in scheduled.items()
            },
            value_of=value_of,
            steps=steps,
            lines=tuple(line for raw in lines if (line := read_line(raw)) is not None),
            ops=ops,
        )

    def has(self, op: str) -> bool:
        """Whether a node computes the op."""
        return any(op in ops for ops in self.ops_of.values())

    def why_apart(self, first: str, second: str) -> Explanation | None:
        """Why two ops are in different kernels or loop nests; None where one is not here."""
        ours = [node for node in self.nodes if first in self.ops_of[node.name]]
        theirs = [node for node in self.nodes if second in self.ops_of[node.name]]
        apart = [(a, b) for a in ours for b in theirs if a.kernel != b.kernel]
        handed_on = [
            (a, b) for a, b in apart if a.name in b.takes and self.value_of.get(a.name) == first
        ]
        found = [
            self._why(a, b, first, second)
            for a, b in handed_on or apart or [(a, b) for a in ours for b in theirs]
        ]
        return _best(found)

    def why_split(self, op: str) -> Explanation | None:
        """Why an op became several kernels or loop nests; None where it did not."""
        ours = [
            node
            for node in self.nodes
            if op in self.ops_of[node.name] and node.kind is NodeKind.COMPUTED
        ]
        found = [
            self._why(a, b, f"its {self._step(a)}", f"its {self._step(b)}")
            for a in ours
            for b in ours
            if a.kernel != b.kernel and a.name in b.takes and self.value_of.get(a.name) == op
        ]
        best = _best(found)
        if best is None:
            return None
        sentence = best.sentence[0].lower() + best.sentence[1:]
        code = _code(ours[0], ours[-1])
        return Explanation(best.reason, f"{op} became several {code}s: {sentence}", best.raw)

    def _step(self, node: ScheduledNode) -> str:
        return self.steps.get(node.name, "last step")

    def _why(self, a: ScheduledNode, b: ScheduledNode, first: str, second: str) -> Explanation:
        line = self._line(a, b)
        raw = "" if line is None else line.raw
        said = None if line is None else meaning_of(line.reason)
        words = {"first": first, "second": second, "code": _code(a, b)}
        for reason, sentence in self._facts(a, b, first, second):
            return Explanation(reason, f"{sentence.format(**words)}.", raw)
        if said is not None and not said.is_vague and said is not UNKNOWN:
            return Explanation(said.reason, f"{said.sentence.format(**words)}.", raw)
        if NodeKind.TEMPLATE in (a.kind, b.kind):
            return Explanation(RefusalReason.MATMUL, _UNPICKED.format(**words), raw)
        if said is UNKNOWN:
            return Explanation(said.reason, f"{said.sentence.format(**words)}: {raw}", raw)
        shares_nothing = said is not None and said.reason is RefusalReason.NOT_WORTH_IT
        for reason, sentence in loops_differ(a, b, shares_nothing=shares_nothing):
            return Explanation(reason, f"{sentence.format(**words)}.", raw)
        return self._vague(a, b, words, said, raw)

    def _facts(
        self, a: ScheduledNode, b: ScheduledNode, first: str, second: str
    ) -> Iterable[tuple[RefusalReason, str]]:
        """What holds whatever the log says, the weightiest first."""
        yield from self._calls(a, b, first, second)
        if a.device != b.device:
            yield RefusalReason.OTHER_SIZE, f"{first} runs on {a.device}, {second} on {b.device}"
        for name, node, other in ((first, a, second), (second, b, first)):
            if node.kind is NodeKind.NOTHING and self._is_joined(name):
                yield RefusalReason.OTHER_SIZE, _JOINED.format(name=name, other=other)
        if a.kind is not NodeKind.COMPUTED or b.kind is not NodeKind.COMPUTED:
            return
        if not self._touch(a, b):
            yield RefusalReason.NOT_WORTH_IT, _NOTHING
        elif self._is_part(a, b):
            yield RefusalReason.GRID_SYNC, _PARTS
        elif a.name in b.takes and (self._is_whole(a) or self._has_parts(a)):
            yield RefusalReason.GRID_SYNC, _WAITS
        elif a.is_reduction and b.is_reduction and sizes_of(a) != sizes_of(b):
            yield (
                RefusalReason.OTHER_AXIS,
                f"{{first}} reduces {spoken(a)} and {{second}} {spoken(b)}, and one {{code}} has "
                "one set of loops",
            )

    def _calls(
        self, a: ScheduledNode, b: ScheduledNode, first: str, second: str
    ) -> Iterable[tuple[RefusalReason, str]]:
        called = [(name, node) for name, node in ((first, a), (second, b)) if _stands_alone(node)]
        if not called:
            return
        matmuls = [name for name, _ in called if self._is_matmul(name)]
        softmax = next((name for name in (first, second) if self._is_softmax(name)), None)
        if matmuls and softmax is not None:
            yield RefusalReason.OTHER_ALGORITHM, _ONLINE_AFTER if softmax == second else _ONLINE
        extern = [(name, node) for name, node in called if node.kind is NodeKind.EXTERN]
        for name, node in extern:
            other = second if name == first else first
            if name in matmuls:
                called_as = self._called_as(node)
                yield RefusalReason.MATMUL, _LIBRARY.format(name=name, call=called_as, other=other)
        for name, node in extern:
            other = second if name == first else first
            called_as = self._called_as(node)
            yield RefusalReason.OPAQUE, _CALLED.format(name=name, call=called_as, other=other)

    def _called_as(self, node: ScheduledNode) -> str:
        """What a call calls, in brackets; one that only takes a result apart has it from above."""
        above = (self._by_name[name].calls for name in node.takes)
        name = node.calls or next((call for call in above if call), "")
        return f" ({name})" if name else ""

    def _vague(
        self,
        a: ScheduledNode,
        b: ScheduledNode,
        words: dict[str, str],
        said: Meaning | None,
        raw: str,
    ) -> Explanation:
        between = sorted(self._between(a, b) - {words["first"], words["second"]})
        if between:
            verb = "have" if len(between) > 1 else "has"
            sentence = (
                f"{' and '.join(between)} {verb} to run after {{first}} and before {{second}}"
            )
        elif said is not None:
            sentence = said.sentence
        else:
            sentence = "The compiler left {first} and {second} apart and did not say why"
        reason = said.reason if said is not None else RefusalReason.OTHER
        return Explanation(reason, f"{sentence.format(**words)}.", raw, is_vague=True)

    def _line(self, a: ScheduledNode, b: ScheduledNode) -> Line | None:
        """What the log said last about two nodes, vague things only where there is nothing else."""
        names = [{node.name, *node.buffers} for node in (a, b)]
        about = [
            line
            for line in self.lines
            if (line.first & names[0] and line.second & names[1])
            or (line.first & names[1] and line.second & names[0])
        ]
        clear = [line for line in about if not meaning_of(line.reason).is_vague]
        return next(reversed(clear or about), None)

    def _is_matmul(self, op: str) -> bool:
        return op in self.ops and self.ops[op].kind is OpKind.MATMUL

    def _is_joined(self, op: str) -> bool:
        return op in self.ops and self.ops[op].aten == "aten.cat.default"

    def _is_softmax(self, op: str) -> bool:
        return op in self.ops and self.ops[op].aten.split(".")[1:2][0] in _SOFTMAX

    def _is_part(self, a: ScheduledNode, b: ScheduledNode) -> bool:
        """Whether the second adds up what blocks of the first have reduced, each a part."""
        same = set(b.nodes) <= set(a.nodes)
        return a.is_reduction and b.is_reduction and a.name in b.takes and same

    def _has_parts(self, node: ScheduledNode) -> bool:
        return any(self._is_part(self._by_name[name], node) for name in node.takes)

    def _is_whole(self, node: ScheduledNode) -> bool:
        """Whether a CPU reduces everything to one number, to which every thread contributes."""
        return node.is_reduction and node.device == "cpu" and not node.loops

    def _touch(self, a: ScheduledNode, b: ScheduledNode) -> bool:
        """Whether a value that one makes reaches the other, or both read the same."""
        reached = a.name in self._needed_by(b) or b.name in self._needed_by(a)
        return reached or bool(set(a.reads) & set(b.reads))

    def _between(self, a: ScheduledNode, b: ScheduledNode) -> frozenset[str]:
        """Ops of the nodes that need the first and that the second needs."""
        above = self._needed_by(b)
        on_the_way = [name for name in above if a.name in self._needed_by(self._by_name[name])]
        return frozenset(op for name in on_the_way for op in self.ops_of[name])

    def _needed_by(self, node: ScheduledNode) -> set[str]:
        found: set[str] = set()
        waiting = list(node.takes)
        while waiting:
            name = waiting.pop()
            if name not in found and name in self._by_name:
                found.add(name)
                waiting.extend(self._by_name[name].takes)
        return found

    @cached_property
    def _by_name(self) -> dict[str, ScheduledNode]:
        return {node.name: node for node in self.nodes}


_LIBRARY = (
    "{name} is a matmul, which runs as a kernel of its own from a library{call}, and {other} "
    "cannot be put into it"
)
_CALLED = (
    "{name} is called as it is{call}: the compiler has no code of its own for it that could take "
    "{other} along"
)
_JOINED = (
    "{name} is written part by part, in loops over one part each, and {other} goes over the whole"
)
_ONLINE_AFTER = (
    "{second} needs whole rows, and the matmul {first} makes its result in tiles: one kernel for "
    "both takes another algorithm, online softmax, as in flash attention"
)
_ONLINE = (
    "The matmul {second} takes the result of {first} in tiles, and {first} is done only after "
    "whole rows: one kernel for both takes another algorithm, online softmax, as in flash attention"
)
_UNPICKED = (
    "A matmul's template could take an elementwise op along, but the compiler left {first} and "
    "{second} apart."
)
_NOTHING = "{first} and {second} share no data, so that one {code} for both would save no bytes"
_PARTS = (
    "Every block reduces a part, and {second} has to wait for all parts, but blocks of one {code} "
    "cannot wait for each other"
)
_WAITS = (
    "{second} needs the finished result of {first}, to which all blocks or threads contribute, and "
    "within one {code} they cannot wait for each other"
)


def _stands_alone(node: ScheduledNode) -> bool:
    return node.kind in (NodeKind.EXTERN, NodeKind.TEMPLATE)


def _code(a: ScheduledNode, b: ScheduledNode) -> str:
    on_cpu = all(n.kind is NodeKind.COMPUTED and n.device == "cpu" for n in (a, b))
    return "loop nest" if on_cpu else "kernel"


def _best(found: list[Explanation]) -> Explanation | None:
    clear = [why for why in found if not why.is_vague]
    return next(iter(clear or found), None)
