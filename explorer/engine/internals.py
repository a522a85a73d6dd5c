"""The parts of torch without a promise that this program relies on, found in one place.

A release of torch may move any of them. What then happens is in ``docs/torch-internals.md``: a run
lacks what the part was for and says so in a sentence.
"""

import importlib
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from explorer.model.errors import ExplorerError

_logger = logging.getLogger(__name__)

PLACES: dict[str, str] = {
    "torch._inductor.output_code:CompiledFxGraph.__call__": "to see inside compiled code",
    "torch._inductor.codecache:PyCodeCache.modules": "to find generated code",
    "torch._inductor.runtime.triton_heuristics:CachingAutotuner.run": "to see Triton kernels run",
    "torch._inductor.codegen.cpp:KernelGroup.finalize_kernel": "to see C++ loop nests made",
    "torch._inductor.codegen.cpp:KernelGroup.call_kernel": "to see C++ functions made",
    "torch._inductor.graph:GraphLowering.compile_to_module": "to see code generated",
    "torch._inductor.virtualized:V": "to know which graph code is generated from",
    "torch._inductor.codegen.triton:TritonScheduling.define_kernel": (
        "to know the nodes of kernels that Inductor does not mark"
    ),
    "torch._inductor.scheduler:fusion_log": "to know why ops were not fused",
    "torch._inductor.debug:_inductor_triton_kernel_to_post_grad_node_info": (
        "to know which nodes a kernel computes"
    ),
    "torch._inductor.cudagraph_trees:reset_cudagraph_trees": "to free CUDA graphs at once",
    "torch._dynamo.utils:counters": "to know of graph breaks",
    "torch._dynamo:optimize": "to apply a fusion plan to whole operators",
    "torch._dynamo.backends.common:aot_autograd": "to apply a fusion plan in torch.compile",
    "torch._dynamo.exc:ShortenTraceback": "to refuse a fusion plan in its own words",
    "torch._guards:tracing": "to compile a group while a graph is being compiled",
    "torch._subclasses.fake_tensor:unset_fake_temporarily": "to compile inside a compiler",
    "torch._subclasses.fake_tensor:FakeTensorMode": "to capture a chain without memory",
    "torch._subclasses.fake_tensor:FakeTensor": "to tell the constants of own code",
    "torch:_fused_adam_": "to run torch's own fused Adam",
    "torch:_fused_adamw_": "to run torch's own fused AdamW",
    "torch.export._trace:DEFAULT_EXPORT_DYNAMO_CONFIG": "to see where a print breaks a graph",
    "torch.fx.traceback:preserve_node_meta": "to capture a backward pass",
    "torch.fx.traceback:current_meta": "to know which op a backward op belongs to",
}
"""Module and attribute, and what it is used for."""


class InternalMovedError(ExplorerError):
    """A part of torch is not where it was in the releases that are known."""


def internal(place: str) -> Any:
    """The part of torch at a place of :data:`PLACES`.

    Raises:
        InternalMovedError: It is not there.
    """
    return patch_point(place)[2]


def patch_point(place: str) -> tuple[Any, str, Any]:
    """The same with what has it and its name there, for one who puts something else there.

    Raises:
        InternalMovedError: It is not there.
    """
    module, _, path = place.partition(":")
    owner: Any = None
    name = ""
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            owner, found = found, getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise moved(path, PLACES[place]) from error
    return owner, name, found


def moved(what: str, purpose: str) -> InternalMovedError:
    """The error for a part that is not there, with the remedy."""
    return InternalMovedError(
        f"torch {torch.__version__} has no {what}, which Kernel Explorer uses {purpose}; "
        "use a torch from 2.11 to 2.13, or a newer Kernel Explorer."
    )


@contextmanager
def settings(module: str, **changes: object) -> Iterator[None]:
    """Change settings of torch inside the ``with`` block; one that is gone needs no change."""
    config = importlib.import_module(module)
    with ExitStack() as stack:
        for name, value in changes.items():
            try:
                stack.enter_context(config.patch({name: value}))
            except AttributeError:
                _logger.warning("torch %s has no setting %s.%s", torch.__version__, module, name)
        yield
