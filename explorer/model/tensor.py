"""Tensors as the explorer sees them: a name, a shape, a dtype and how many bytes they hold."""

from dataclasses import dataclass
from enum import StrEnum


class TensorRole(StrEnum):
    """What a tensor is to the chain."""

    INPUT = "input"
    INTERMEDIATE = "intermediate"
    OUTPUT = "output"
    WORKSPACE = "workspace"
    """Made by the generated code or a library; the chain as written does not name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor in device memory.

    Attributes:
        id: Unique within its graph or run.
        name: What a person calls it (``q``, ``scores``); need not be unique.
        shape: Sizes, outermost first.
        dtype: ``bf16``, ``fp32``, ... (the keys of ``units.BYTES_PER_ELEMENT``).
        n_bytes: Bytes the elements occupy in memory, a broadcast (stride 0) axis once.
        role: Input, intermediate, output or workspace.
    """

    id: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    n_bytes: int
    role: TensorRole
