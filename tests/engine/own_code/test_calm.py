"""Attention with dropout, made comparable: what a GPU's operators become."""

import operator

import torch
from torch import fx

from explorer.engine.own_code.calm import put_plain_attention


def test_a_gpus_attention_becomes_one_that_knows_fp64() -> None:
    graph = fx.Graph()
    q = graph.placeholder("q")
    attention = graph.call_function(
        torch.ops.aten._scaled_dot_product_efficient_attention.default,
        (q, q, q, None, False, 0.5, True),
        {"scale": 0.25},
    )
    attention.meta["val"] = (torch.empty(1, 2, 8, 16),)
    graph.output((graph.call_function(operator.getitem, (attention, 0)),))
    module = fx.GraphModule(torch.nn.Module(), graph)

    put_plain_attention(module)

    x = torch.randn(1, 2, 8, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.25)
    assert torch.equal(module(x)[0], expected)
