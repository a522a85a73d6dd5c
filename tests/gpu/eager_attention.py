"""The attention chain as plain eager torch, run alone so that another profiler can count it."""

import math
import sys
from collections.abc import Callable

import torch

BATCH, HEADS, SEQ_LEN, HEAD_DIM = 2, 16, 4096, 64
DROPOUT = 0.1


def attention() -> Callable[[], torch.Tensor]:
    """The chain on its inputs, warmed up: six launches, one an operator."""
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(BATCH, HEADS, SEQ_LEN, HEAD_DIM, device="cuda", dtype=torch.bfloat16)
        for _ in range(3)
    )
    mask = torch.randn(SEQ_LEN, SEQ_LEN, device="cuda", dtype=torch.bfloat16)

    def run() -> torch.Tensor:
        scores = torch.matmul(q, k.transpose(-1, -2))
        scores = scores * (1.0 / math.sqrt(HEAD_DIM))
        scores = scores + mask
        weights = torch.dropout(torch.softmax(scores, dim=-1), DROPOUT, True)
        return torch.matmul(weights, v)

    with torch.no_grad():
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    return torch.no_grad()(run)


if __name__ == "__main__":
    work = attention()
    torch.cuda.profiler.start()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        work()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
