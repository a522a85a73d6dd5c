"""What the engine's tests share: a small chain on the CPU."""

import os

# Else Inductor spends ten seconds on finding out what the processor can do, once a cache folder.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")

import pytest
import torch

from explorer.engine.prepare import ChosenChain, capture_chain, make_ready
from explorer.engine.prepared import Prepared

CPU = torch.device("cpu")


@pytest.fixture(scope="session")
def small_chosen() -> ChosenChain:
    """Attention of 1 x 2 x 64 x 16 in fp32, with a mask and dropout."""
    return capture_chain("attention", {"heads": 2, "seq_len": 64, "head_dim": 16}, CPU)


@pytest.fixture
def small(small_chosen: ChosenChain) -> Prepared:
    """The same with its inputs, fresh for each test."""
    return make_ready(small_chosen, seed=0)
