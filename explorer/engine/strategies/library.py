"""How a library's fused operators become a strategy: one line of its table a chain."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from explorer.chains.descriptor import Chain
from explorer.engine.chain_functions.base import Parameters
from explorer.engine.prepared import ChainFunction, Prepared
from explorer.engine.strategies.base import (
    Built,
    Case,
    CaseRefusal,
    LibraryOps,
    PeakFamily,
    Strategy,
    always,
)


def _takes_any_case(_case: Case) -> str | None:
    """There is nothing to refuse."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOperator:
    """What a library has for one chain.

    Attributes:
        chain_id: The chain.
        name: As the library's documentation has it.
        make: Makes the function from the chain's parameters. It takes the chain's inputs, gives
            its results, and leaves the inputs as they are unless the chain updates them.
        ops: The chain's ops that its kernels carry out, by a part of the kernel's or operator's
            name; left out where one kernel carries out all that is not torch's own operator.
        refusal: Why it cannot run a case: one sentence, or None.
        cpu_note: What a person should know of it where it runs on a CPU.
        rounding: How far off it takes the chain's constants, as a share.
        rounding_note: Why, one sentence.
    """

    chain_id: str
    name: str
    make: Callable[[Parameters], ChainFunction]
    ops: tuple[tuple[str, tuple[str, ...]], ...] = ()
    refusal: CaseRefusal = _takes_any_case
    cpu_note: str | None = None
    rounding: float = 0.0
    rounding_note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library with its table.

    Attributes:
        name: As on the command line.
        title: As in the window.
        owner: Whose operators they are, as a sentence begins.
        operators: By chain.
        module: What is imported, None for torch's own.
        package: What to install for it.
        needs_gpu: It has no kernels for a CPU.
    """

    name: str
    title: str
    owner: str
    operators: dict[str, LibraryOperator]
    module: str | None = None
    package: str | None = None
    needs_gpu: bool = False


def table(*operators: LibraryOperator) -> dict[str, LibraryOperator]:
    """The operators by chain."""
    return {operator.chain_id: operator for operator in operators}


def same_for_all(function: ChainFunction) -> Callable[[Parameters], ChainFunction]:
    """The ``make`` of an operator that no parameter changes."""
    return lambda _parameters: function


def forward_only(name: str, why: str) -> CaseRefusal:
    """The refusal of an operator that cannot train.

    Args:
        name: The library's.
        why: The rest of a sentence that begins with "its backward pass".
    """

    def refusal(case: Case) -> str | None:
        if not case.trains:
            return None
        return (
            f"{name} runs {case.chain.id} forward only, since its backward pass {why}; "
            "leave --backward out."
        )

    return refusal


def strategy_of(library: Library) -> Strategy:
    """The strategy that runs a chain by a library's operator for it."""
    return Strategy(
        name=library.name,
        title=library.title,
        missing=lambda: _missing(library),
        chain_refusal=lambda chain: _chain_refusal(library, chain),
        device_refusal=lambda device: _device_refusal(library, device),
        case_refusal=lambda case: library.operators[case.chain.id].refusal(case),
        build=lambda prepared: _build(library.operators, prepared),
        # An upper bound: some of torch's own are computed op by op on a CPU.
        peak=always(PeakFamily.EAGER),
    )


def _missing(library: Library) -> str | None:
    if library.module is None:
        return None
    spec = importlib.util.find_spec(library.module)
    # A folder that happens to be called so has no origin.
    if spec is not None and spec.origin is not None:
        return None
    return (
        f"{library.name} needs the package {library.package}, which is not installed for this "
        f"Python; `pip install {library.package}` does it."
    )


def _chain_refusal(library: Library, chain: Chain) -> str | None:
    if chain.id in library.operators:
        return None
    known = ", ".join(library.operators)
    return f"{library.owner} has no fused operator for {chain.id}; it has some for {known}."


def _device_refusal(library: Library, device: torch.device) -> str | None:
    if not library.needs_gpu or device.type == "cuda":
        return None
    return f"{library.name} needs an NVIDIA GPU: {library.owner} has no kernels for a CPU."


def _build(operators: Mapping[str, LibraryOperator], prepared: Prepared) -> Built:
    operator = operators[prepared.chain.id]
    call = prepared.caller(operator.make(prepared.parameters))
    call()
    cpu_note = operator.cpu_note if prepared.device.type != "cuda" else None
    return Built(
        call=call,
        backend=operator.name,
        notes=tuple(note for note in (cpu_note, operator.rounding_note) if note),
        rounding=operator.rounding,
        library=LibraryOps(by_kernel=operator.ops),
    )
