"""What went wrong under a strategy, as one sentence with the remedy."""

import traceback

import torch

from explorer.model.errors import ExplorerError

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "std::bad_alloc")
_MOST_SAID = 300
_LOST = ("device-side assert", "illegal memory access", "CUDA error", "unspecified launch failure")


class NoRoomError(ExplorerError):
    """There was too little memory for a part of the work that the rest does not need."""


class NoReferenceError(ExplorerError):
    """There is no truth to compare a chain with; the sentence says why."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was what it lacked, on the device or the host."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and any(sign in text for sign in _OUT_OF_MEMORY)


def is_device_lost(error: BaseException) -> bool:
    """Whether a kernel faulted: no later call on the device works in this process."""
    if is_out_of_memory(error):
        return False
    text = f"{type(error).__name__}: {error}"
    return "AcceleratorError" in text or any(sign in text for sign in _LOST)


def sentence_for(
    error: BaseException, spec: str, size_parameter: str | None, place: str | None = None
) -> str:
    """Say what happened to a strategy.

    Args:
        error: What was raised.
        spec: The strategy.
        size_parameter: What the user can make smaller, None for the inputs.
        place: The user's own line on the way to the error, None if there is none.
    """
    if isinstance(error, ExplorerError):
        return str(error)
    at = f" at {place}" if place else ""
    if is_out_of_memory(error):
        cure = (
            f"choose a smaller {size_parameter} or batch"
            if size_parameter
            else ("give it smaller inputs")
        )
        return f"{spec} ran out of memory{at}; {cure}."
    if is_device_lost(error):
        return (
            f"A kernel of {spec} faulted on the device ({first_line(error)}); "
            "the next run starts in a new worker."
        )
    if _is_compiler_error(error):
        return (
            f"{spec} could not be compiled: {first_line(error)}; eager shows the chain without "
            "the compiler."
        )
    said = f"{type(error).__name__}: {first_line(error)}."
    return f"{place} raises {said}" if place else f"{spec} was stopped by {said}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message without its full stop, or its kind.

    Of a very long line the first sentence, as of torch's lists of all its backends.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    first = lines[0]
    if len(first) > _MOST_SAID:
        first = first.partition(". ")[0]
    return first.rstrip(".") if len(first) <= _MOST_SAID else f"{first[:_MOST_SAID].rstrip()}…"


def _is_compiler_error(error: BaseException) -> bool:
    module = type(error).__module__
    if module.startswith(("torch._dynamo", "torch._inductor", "triton")):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return any("torch/_inductor/" in frame.filename for frame in frames)
