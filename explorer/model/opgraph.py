"""The captured chain: its operators in order, with the tensors between them."""

from dataclasses import dataclass, field
from enum import StrEnum

from explorer.model.tensor import Tensor

OF_BACKWARD = "d_"
"""What the names of the backward pass's ops begin with: ``d_softmax`` belongs to ``softmax``."""


class OpKind(StrEnum):
    """How an operator touches memory, which decides what it can be fused with."""

    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    MATMUL = "matmul"
    VIEW = "view"
    RANDOM = "random"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPart:
    """What an op reads of a tensor that it does not read whole.

    Attributes:
        tensor: Id of the tensor.
        part: Says which part; of two reads with the same words the second is no other part.
        n_bytes: Bytes of it.
    """

    tensor: str
    part: str
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One ATen operator of the chain.

    Attributes:
        name: What a learner would say (``softmax``); unique within the graph.
        aten: The overload, e.g. ``aten._softmax.default``.
        kind: Elementwise, reduction, ...
        reads: Ids of the tensors it reads, in argument order.
        writes: Ids of the tensors it writes.
        flops: Floating-point operations (a multiply-add counts two; exp, sqrt and the like one).
        detail: A few words beside the name (``× 1/√d``), empty if there is nothing to add.
        source_line: The line of the chain's code it comes from, stripped; None if unknown.
        source_place: Where that line stands, ``file.py:12``, of code that is not built in.
        is_backward: It belongs to the backward pass.
        piece: Which of the graphs it is in that graph breaks leave, from 0 on.
        parts: Of the tensors that it reads, what it reads of those that it does not read whole.
    """

    name: str
    aten: str
    kind: OpKind
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    flops: int
    detail: str = ""
    source_line: str | None = None
    source_place: str | None = None
    is_backward: bool = False
    piece: int = 0
    parts: tuple[TensorPart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBreak:
    """A place where Dynamo gave up one graph and began another.

    Attributes:
        place: The user's line as ``file.py:7``; empty if unknown.
        reason: In few words.
        raw: What torch said, empty if nothing.
    """

    place: str
    reason: str
    raw: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpGraph:
    """Operators in execution order and every tensor they name.

    Attributes:
        ops: In execution order.
        tensors: Every one that they read or write.
        breaks: Where the code could not be captured whole: ``breaks[i]`` lies between the ops of
            piece ``i`` and those of piece ``i + 1``.
    """

    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]
    breaks: tuple[GraphBreak, ...] = ()

    def tensor(self, tensor_id: str) -> Tensor:
        """Return the tensor with that id.

        Raises:
            KeyError: There is none.
        """
        for tensor in self.tensors:
            if tensor.id == tensor_id:
                return tensor
        raise KeyError(tensor_id)

    @property
    def flops(self) -> int:
        """Floating-point operations of the whole chain."""
        return sum(op.flops for op in self.ops)
