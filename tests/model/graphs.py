"""Small op graphs for tests of plans: named ops with what they read and write, 100 bytes each."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from explorer.model.opgraph import GraphBreak, Op, OpGraph, OpKind
from explorer.model.tensor import Tensor, TensorRole

N_BYTES = 100


def graph_of(
    ops: Iterable[tuple[str, str, str]],
    *,
    outputs: str = "",
    kinds: Mapping[str, OpKind] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> OpGraph:
    """A graph from ``(name, "what it reads", "what it writes")``; what no op made is an input."""
    listed = list(ops)
    made: set[str] = set()
    inputs: set[str] = set()
    for _, reads, writes in listed:
        inputs |= set(reads.split()) - made
        made |= set(writes.split()) - inputs
    names = dict.fromkeys(t for _, reads, writes in listed for t in f"{reads} {writes}".split())
    roles = dict.fromkeys(names, TensorRole.INTERMEDIATE)
    roles |= dict.fromkeys(inputs, TensorRole.INPUT)
    roles |= dict.fromkeys(outputs.split(), TensorRole.OUTPUT)
    return OpGraph(
        ops=tuple(
            Op(
                name=name,
                aten=f"aten.{name}",
                kind=(kinds or {}).get(name, OpKind.ELEMENTWISE),
                reads=tuple(reads.split()),
                writes=tuple(writes.split()),
                flops=1,
            )
            for name, reads, writes in listed
        ),
        tensors=tuple(
            Tensor(
                id=name,
                name=name,
                shape=(50,),
                dtype="bf16",
                n_bytes=(sizes or {}).get(name, N_BYTES),
                role=role,
            )
            for name, role in roles.items()
        ),
    )


SOFTMAX_CHAIN = graph_of(
    [
        ("scale", "scores", "scaled"),
        ("mask", "scaled mask", "masked"),
        ("softmax", "masked", "probs"),
        ("dropout", "probs", "dropped"),
    ],
    outputs="dropped",
)
RMS_NORM = graph_of(
    [
        ("residual", "x res", "h"),
        ("square", "h", "h2"),
        ("mean", "h2", "var"),
        ("rsqrt", "var", "r"),
        ("normalize", "h r", "n"),
        ("weight", "n w", "y"),
    ],
    outputs="h y",
    sizes={"var": 1, "r": 1, "w": 10},
)
ADAM = graph_of(
    [
        ("momentum", "m g", "m"),
        ("decay", "v", "v"),
        ("variance", "v g", "v"),
        ("root", "v", "root"),
        ("update", "p m root", "p"),
    ]
)
CROSSED = graph_of(
    [
        ("sin", "a", "p"),
        ("cos", "b", "q"),
        ("exp", "q", "e"),
        ("add", "p e", "s1"),
        ("tan", "p", "t"),
        ("sum", "q t", "s2"),
    ],
    outputs="s1 s2",
)
"""Two convex groups of it may wait for each other."""


def in_pieces(graph: OpGraph, *cuts: int) -> OpGraph:
    """The graph with a graph break before the ops at these places, and with source places."""
    ops = tuple(
        replace(
            op,
            piece=sum(cut <= i for cut in cuts),
            source_place=f"net.py:{i + 1}",
            source_line=f"y = {op.name}(y)",
        )
        for i, op in enumerate(graph.ops)
    )
    breaks = tuple(GraphBreak(place=f"net.py:{cut}", reason=f"print({cut})") for cut in cuts)
    return replace(graph, ops=ops, breaks=breaks)
