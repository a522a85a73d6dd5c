"""A CUDA graph of eager: the same kernels, launched by the driver without the host."""

import torch

from explorer.engine.prepared import Prepared, Returned
from explorer.engine.strategies.base import Built, PeakFamily, Strategy, always, plain_call


def _refusal(device: torch.device) -> str | None:
    if device.type == "cuda":
        return None
    return "cudagraph needs an NVIDIA GPU; on a CPU use eager, whose kernels are the same."


def _build(prepared: Prepared) -> Built:
    chain = plain_call(prepared)
    with torch.cuda.device(prepared.device):
        # Libraries set themselves up at the first call, which must not be captured.
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call] # torch has no hints there
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                chain()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        # Else the allocator holds what eager needed beside what the graph's own pool needs.
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            output = chain()

    held: list[Returned] = [output]

    def call() -> Returned:
        graph.replay()
        return held[0]

    def give_back() -> None:
        held.clear()
        graph.reset()

    call()
    return Built(call=call, give_back=give_back, uses_graph=True)


ENTRIES = (
    Strategy(
        name="cudagraph",
        title="CUDA graph of eager",
        device_refusal=_refusal,
        build=_build,
        peak=always(PeakFamily.EAGER_GRAPH),
    ),
)
