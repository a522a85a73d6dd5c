"""What is known of single ATen operators: how they touch memory, and FLOPs counted by hand."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by
from torch.fx.experimental.proxy_tensor import make_fx

from explorer.engine.op_facts import (
    flops_of,
    is_view,
    kind_of,
    kind_of_node,
    nodes_read,
    picks,
    reads_nothing,
)
from explorer.model.opgraph import OpKind

ATEN = torch.ops.aten
X = torch.ones(3, 8)
WHOLE = 3 * 8


def index() -> torch.Tensor:
    return torch.zeros(3, 1, dtype=torch.int64)


def ops_of(function: Callable[..., object], *inputs: torch.Tensor) -> dict[str, torch.fx.Node]:
    """What a function computes, by operator; views are left out."""
    traced = make_fx(function, decomposition_table={}, tracing_mode="fake")(*inputs)
    return {
        str(node.target).split(".")[1]: node
        for node in traced.graph.nodes
        if node.op == "call_function" and not is_view(node.target)
    }


def test_moving_elements_is_elementwise_and_no_arithmetic() -> None:
    found = ops_of(lambda x: (torch.cat((x, x)), x.clone(), x.half(), x.flip(0)), X)
    assert found.keys() == {"cat", "clone", "_to_copy", "flip"}
    for node in found.values():
        assert kind_of(node.target) is OpKind.ELEMENTWISE
        assert flops_of(node) == 0


def test_picking_reads_as_much_as_it_hands_out() -> None:
    found = ops_of(lambda x, i: (x.gather(1, i), F.embedding(i, x)), X, index())
    for node in found.values():
        assert picks(node.target)
        assert kind_of(node.target) is OpKind.ELEMENTWISE
        assert flops_of(node) == 0
    assert not picks(ATEN.add.Tensor)


def test_fills_read_nothing() -> None:
    found = ops_of(lambda x: (torch.zeros_like(x), x.new_ones(2), torch.full((2,), 3.0)), X)
    assert found.keys() == {"zeros_like", "new_ones", "full"}
    assert all(reads_nothing(node.target) for node in found.values())
    assert not reads_nothing(ATEN.neg.default)


@pytest.mark.parametrize(
    ("function", "name", "kind", "flops"),
    [
        (lambda x: -x, "neg", OpKind.ELEMENTWISE, WHOLE),
        (lambda x: x.log(), "log", OpKind.ELEMENTWISE, WHOLE),
        (lambda x: x.amax(-1), "amax", OpKind.REDUCTION, WHOLE),
        (torch.sigmoid, "sigmoid", OpKind.ELEMENTWISE, 4 * WHOLE),
        (lambda x: torch.log_softmax(x, -1), "_log_softmax", OpKind.REDUCTION, 5 * WHOLE),
        (lambda x: x @ x.T, "mm", OpKind.MATMUL, 2 * 3 * 3 * 8),
        (lambda x: torch.addmm(x[:, :3], x, x.T), "addmm", OpKind.MATMUL, 2 * 3 * 3 * 8),
        (lambda x: torch.mv(x, x[0]), "mv", OpKind.MATMUL, 2 * 3 * 8),
        # Three channels in and two out, windows of three: eight places less two.
        (
            lambda x: F.conv1d(x[None], torch.ones(2, 3, 3)),
            "convolution",
            OpKind.OPAQUE,
            2 * (2 * 6) * (3 * 3),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_forward_operator(
    function: Callable[..., object], name: str, kind: OpKind, flops: int
) -> None:
    node = ops_of(function, X)[name]
    assert kind_of(node.target) is kind
    assert flops_of(node) == flops


def backward_of(
    function: Callable[..., torch.Tensor], *inputs: torch.Tensor
) -> dict[str, torch.fx.Node]:
    """The same of forward and backward."""

    def both(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = [t.detach().requires_grad_() if t.is_floating_point() else t for t in given]
        result = function(*leaves)
        trained = [t for t in leaves if t.requires_grad]
        return torch.autograd.grad(result, trained, torch.ones_like(result))

    return ops_of(both, *inputs)


@pytest.mark.parametrize(
    ("function", "name", "kind", "flops"),
    [
        (F.silu, "silu_backward", OpKind.ELEMENTWISE, 9 * WHOLE),
        (F.gelu, "gelu_backward", OpKind.ELEMENTWISE, 11 * WHOLE),
        (
            lambda x: F.gelu(x, approximate="tanh"),
            "gelu_backward",
            OpKind.ELEMENTWISE,
            18 * WHOLE,
        ),
        (torch.sigmoid, "sigmoid_backward", OpKind.ELEMENTWISE, 3 * WHOLE),
        (
            lambda x: torch.softmax(x, -1),
            "_softmax_backward_data",
            OpKind.REDUCTION,
            4 * WHOLE,
        ),
        (
            lambda x: torch.log_softmax(x, -1),
            "_log_softmax_backward_data",
            OpKind.REDUCTION,
            4 * WHOLE,
        ),
        (
            lambda x: ATEN.native_dropout(x, 0.5, True)[0],
            "native_dropout_backward",
            OpKind.ELEMENTWISE,
            2 * WHOLE,
        ),
        (
            lambda x: F.layer_norm(x, (8,), torch.ones(8), torch.ones(8)),
            "native_layer_norm_backward",
            OpKind.REDUCTION,
            13 * WHOLE,
        ),
        (lambda x: x[1:], "slice_backward", OpKind.ELEMENTWISE, 0),
        # One addition for each that was picked.
        (lambda x: x.gather(1, index()), "scatter_add", OpKind.OPAQUE, 3),
        (
            lambda x: F.nll_loss(x, index()[:, 0]),
            "nll_loss_forward",
            OpKind.REDUCTION,
            2 * 3,
        ),
        (lambda x: F.nll_loss(x, index()[:, 0]), "nll_loss_backward", OpKind.OPAQUE, 3),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_operator_of_training(
    function: Callable[..., torch.Tensor], name: str, kind: OpKind, flops: int
) -> None:
    node = backward_of(function, X)[name]
    assert kind_of(node.target) is kind
    assert flops_of(node) == flops


@pytest.mark.parametrize(
    ("function", "name", "read"),
    [
        # Gradient, input, mean, reciprocal deviation and weight; of the bias the shape alone.
        (
            lambda x: F.layer_norm(x, (8,), torch.ones(8), torch.zeros(8)),
            "native_layer_norm_backward",
            (0, 1, 3, 4, 5),
        ),
        # Gradient, index and how many there are; the values that were picked from are not.
        (lambda x: F.nll_loss(x, index()[:, 0]), "nll_loss_backward", (0, 2, 6)),
        (torch.sigmoid, "sigmoid_backward", (0, 1)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_argument_of_which_the_shape_is_taken_is_not_read(
    function: Callable[..., torch.Tensor], name: str, read: tuple[int, ...]
) -> None:
    node = backward_of(function, X)[name]
    assert nodes_read(node) == [node.args[place] for place in read]


def test_fused_attention_counts_its_matmuls() -> None:
    """Two forward; backward the scores anew, and from each matmul the gradients of both factors."""
    q = torch.ones(2, 3, 5, 8)
    found = backward_of(F.scaled_dot_product_attention, q, q, q)
    a_matmul = 2 * (2 * 3) * 5 * 5 * 8
    flops = {
        name.endswith("_backward"): flops_of(node)
        for name, node in found.items()
        if name.startswith("_scaled_dot_product")
    }
    assert flops == {False: 2 * a_matmul, True: 5 * a_matmul}


@pytest.mark.parametrize(
    ("dropout", "train", "kind"),
    [
        (0.0, True, OpKind.OPAQUE),
        (0.5, False, OpKind.OPAQUE),
        (0.5, True, OpKind.RANDOM),
    ],
)
def test_a_recurrent_layer_draws_numbers_only_to_drop_some_in_training(
    dropout: float, train: bool, kind: OpKind
) -> None:
    graph = torch.fx.Graph()
    x, w = graph.placeholder("x"), graph.placeholder("w")
    node = graph.call_function(
        ATEN._cudnn_rnn.default,
        (x, [w] * 4, 4, w, x, None, 3, 8, 0, 1, False, dropout, train, False, [], None),
    )
    assert kind_of_node(node) is kind
