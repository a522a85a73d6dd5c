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


def test_a_view_of_its_result_takes_it_in_any_order() -> None:
    """A GPU lays heads side by side, so that its graph joins them by a view."""
    graph = fx.Graph()
    q = graph.placeholder("q")
    attention = graph.call_function(
        torch.ops.aten._scaled_dot_product_flash_attention.default, (q, q, q, 0.5)
    )
    attention.meta["val"] = (torch.empty(1, 8, 2, 16).transpose(1, 2),)
    result = graph.call_function(operator.getitem, (attention, 0))
    together = graph.call_function(torch.ops.aten.transpose.int, (result, 1, 2))
    graph.output((graph.call_function(torch.ops.aten.view.default, (together, [1, 8, 32])),))
    module = fx.GraphModule(torch.nn.Module(), graph)

    put_plain_attention(module)

    x = torch.randn(1, 2, 8, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = torch.nn.functional.scaled_dot_product_attention(x, x, x)
        [joined] = module(x)
    assert torch.equal(joined, expected.transpose(1, 2).reshape(1, 8, 32))
