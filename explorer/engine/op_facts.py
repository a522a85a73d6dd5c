"""What is known of an ATen operator: whether it is a view, how it touches memory, its FLOPs."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import torch

from explorer.model.opgraph import OpKind

_ATEN = torch.ops.aten

_ATTENTIONS_SHARE = "dropout_p"
"""What torch's operators for attention call the share that they drop."""
_RECURRENTS_SHARE = "dropout"
_MATMULS = {"mm": 0, "bmm": 0, "mv": 0, "dot": 0, "addmm": 1, "baddbmm": 1, "addbmm": 1, "addmv": 1,
            "_scaled_mm": 0}  # fmt: skip
"""By operator, which argument is the first factor: an addend may come before it."""
# By name: torch's own tag for them is younger than the oldest torch that runs here.
_REDUCTIONS = frozenset((
    *("_softmax", "_log_softmax", "logsumexp", "cumsum", "cumprod", "native_layer_norm"),
    *("native_group_norm", "_fused_rms_norm", "sum", "mean", "prod", "amax", "amin", "aminmax"),
    *("max", "min", "argmax", "argmin", "var", "var_mean", "std", "std_mean", "any", "all"),
    *("norm", "linalg_vector_norm", "nll_loss_forward"),
    *("_softmax_backward_data", "_log_softmax_backward_data", "native_layer_norm_backward"),
    *("native_group_norm_backward", "_fused_rms_norm_backward"),
))  # fmt: skip
_FILLS = frozenset((
    *("zeros", "ones", "full", "arange", "scalar_tensor", "zeros_like", "ones_like", "full_like"),
    *("new_zeros", "new_ones", "new_full"),
))  # fmt: skip
"""They take at most the shape and dtype of a tensor, and read nothing of it."""
_SHAPES_ONLY = {
    "native_layer_norm_backward": "bias",
    "nll_loss_backward": "self",
    "nll_loss2d_backward": "self",
}
"""By operator, the argument of which it takes the shape alone."""
_PICKS = frozenset(("gather", "index", "index_select", "embedding", "take"))
"""Of their first tensor they read as many elements as they hand out."""
_PUTS = {"scatter_": 2, "scatter_add_": 2, "put_": 1, "index_add_": 3}
"""Operators in place that reach only as many elements as the argument in that place has."""
_ALLOCATING = ("empty", "new_empty")
_REPOINTING = "set_"
"""Has a tensor look at other memory, and touches neither."""
_MOVES = frozenset((
    *_FILLS, *_PICKS,
    *("cat", "stack", "clone", "copy", "_to_copy", "lift_fresh_copy", "repeat", "fill", "flip"),
    *("roll", "tril", "triu", "constant_pad_nd", "slice_backward", "select_backward"),
    *("slice_scatter", "select_scatter"),
))  # fmt: skip
"""They only put elements where they belong: elementwise to a compiler, and no arithmetic."""
_FLOPS_AN_ELEMENT = {
    # A comparison for the maximum, a subtraction, exp, an addition and a division.
    "_softmax": 5,
    # The same with a subtraction for the division.
    "_log_softmax": 5,
    # A product and an addition for the sum; the sum's product, and a subtraction.
    "_softmax_backward_data": 4,
    # An addition for the sum; exp, the sum's product, and a subtraction.
    "_log_softmax_backward_data": 4,
    # A comparison and a multiplication; making the random number is integer work.
    "native_dropout": 2,
    # What was kept, and its factor.
    "native_dropout_backward": 2,
    # For the mean an addition; for the variance a subtraction, a square and an addition; then a
    # subtraction, a multiplication, the weight and the bias.
    "native_layer_norm": 8,
    # The normalized value anew in two, and the weight; for a row's two sums a product and two
    # additions; two products and two subtractions with them; two additions and a product for the
    # weight's gradient and the bias's.
    "native_layer_norm_backward": 13,
    # A square and an addition; a multiplication, and the weight.
    "_fused_rms_norm": 4,
    # A negation, exp, an addition and a division.
    "silu": 4,
    "sigmoid": 4,
    # The sigmoid in four; a subtraction, an addition and three products.
    "silu_backward": 9,
    # A subtraction and two products.
    "sigmoid_backward": 3,
    "tanh_backward": 3,
    # A product into the erf, the erf, an addition and two products behind it.
    "gelu": 5,
    # The cumulated density in four and the density in four; two products and an addition.
    "gelu_backward": 11,
    # A subtraction, a multiplication and an addition.
    "lerp": 3,
    # The product (or the quotient), its factor, and the addition.
    "addcmul": 3,
    "addcdiv": 3,
}
"""Where one operation an element of the result would be wrong."""
_FLOPS_BY_TANH = {
    # Two products for the cube, one each for its factor and the whole, and an addition lead into
    # the tanh; an addition and two products follow it.
    "gelu": 9,
    # The tanh in six; three for one half of the sum, seven for the other with both derivatives;
    # the sum, and the product with the gradient.
    "gelu_backward": 18,
}
_FLOPS_OF_ARGUMENT = {
    "scatter_add": (3, 1),
    "index_add": (3, 1),
    "embedding_dense_backward": (0, 1),
    # A negation or a weight, and an addition.
    "nll_loss_forward": (1, 2),
    "nll_loss_backward": (2, 1),
}
"""Operations an element of an argument: these reach only what it picks."""
_ATTENTION = "_scaled_dot_product"
_LISTS = "_foreach_"
"""Begins the name of an operator that does to each tensor of a list what the rest of it says."""
_BACKWARD = "_backward"


def name_of(target: Any) -> str:
    """The ATen operator's name without its overload; empty for what is none."""
    if not isinstance(target, torch._ops.OpOverload):
        return ""
    space, _, name = target._schema.name.partition("::")
    return name if space == "aten" else ""


def is_view(target: Any) -> bool:
    """Whether the operator only looks at its input's memory in another way: it launches nothing."""
    if target is operator.getitem:
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if target in (_ATEN._unsafe_view.default, _ATEN.alias.default, _ATEN.detach.default):
        return True
    if name_of(target) == _REPOINTING:
        return True
    return any(
        result.alias_info is not None and not result.alias_info.is_write
        for result in target._schema.returns
    )


def allocates(target: torch._ops.OpOverload) -> bool:
    """Whether an operator takes memory and leaves it as it is."""
    return target._schema.name.rpartition("::")[2].startswith(_ALLOCATING)


def reads_nothing(target: Any) -> bool:
    """Whether the operator looks at a tensor's shape at most, and fills a new one."""
    return name_of(target) in _FILLS


def takes_shape_only(target: Any, argument: str) -> bool:
    """Whether the operator reads no element of the argument of that name."""
    return reads_nothing(target) or _SHAPES_ONLY.get(name_of(target)) == argument


def nodes_read(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes whose elements a node reads, in order, each once."""
    if reads_nothing(node.target):
        return []
    unread = _SHAPES_ONLY.get(name_of(node.target))
    if unread is None or not isinstance(node.target, torch._ops.OpOverload):
        return node.all_input_nodes
    names = [argument.name for argument in node.target._schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | node.kwargs
    read = [value for name, value in given.items() if name != unread]
    return [each for each in node.all_input_nodes if each in read]


def picks(target: Any) -> bool:
    """Whether the operator reads of its first tensor only as many elements as it hands out."""
    return name_of(target) in _PICKS


def puts(target: Any, arguments: Sequence[Any]) -> int | None:
    """How many elements of its first tensor an operator in place reaches; None for all of them.

    Args:
        target: The operator.
        arguments: As it is called with.
    """
    place = _PUTS.get(name_of(target))
    given = None if place is None or place >= len(arguments) else arguments[place]
    return given.numel() if isinstance(given, torch.Tensor) else None


def kind_of(target: Any) -> OpKind:
    """How an operator touches memory."""
    if not isinstance(target, torch._ops.OpOverload):
        return OpKind.OPAQUE
    if is_view(target):
        return OpKind.VIEW
    name = name_of(target)
    if name in _MATMULS:
        return OpKind.MATMUL
    if torch.Tag.nondeterministic_seeded in target.tags:
        return OpKind.RANDOM
    is_over_lists = name.startswith(_LISTS) and name.removeprefix(_LISTS) not in _REDUCTIONS
    if torch.Tag.pointwise in target.tags or name in _MOVES or is_over_lists:
        return OpKind.ELEMENTWISE
    if name in _REDUCTIONS:
        return OpKind.REDUCTION
    return OpKind.OPAQUE


def kind_of_node(node: torch.fx.Node) -> OpKind:
    """The same of a node: attention that is told to drop nothing draws no random numbers.

    Nor does a recurrent layer, or one that is not trained.
    """
    kind = kind_of(node.target)
    if kind is not OpKind.RANDOM:
        return kind
    shares = (_given(node, _ATTENTIONS_SHARE), _given(node, _RECURRENTS_SHARE))
    drops_nothing = 0 in shares or _given(node, "train") is False
    return OpKind.OPAQUE if drops_nothing else kind


def is_attention(node: torch.fx.Node) -> bool:
    """Whether it is one of torch's operators for the whole of attention."""
    return _ATTENTIONS_SHARE in _argument_names(node)


def set_dropout(node: torch.fx.Node, share: float) -> None:
    """Have attention drop that share."""
    place = _argument_names(node).index(_ATTENTIONS_SHARE)
    if place < len(node.args):
        node.update_arg(place, share)
    else:
        node.update_kwarg(_ATTENTIONS_SHARE, share)


def _given(node: torch.fx.Node, name: str) -> Any:
    """The argument of that name; its default where none is given, None where there is none."""
    names = _argument_names(node)
    if name not in names:
        return None
    place = names.index(name)
    if place < len(node.args):
        return node.args[place]
    return node.kwargs.get(name, node.target._schema.arguments[place].default_value)  # type: ignore[union-attr] # it has argument names


def _argument_names(node: torch.fx.Node) -> list[str]:
    if not isinstance(node.target, torch._ops.OpOverload):
        return []
    return [argument.name for argument in node.target._schema.arguments]


def flops_of(node: torch.fx.Node) -> int:
    """Floating-point operations of a node: a multiply-add counts two, exp and the like one.

    An elementwise op counts one an element of its result, a reduction one an element that it
    reduces, where nothing else is known of it; a power counts as one, whatever the exponent.
    """
    value = node.meta["val"]
    # A gradient that is not asked for is None.
    values = value if isinstance(value, tuple | list) else (value,)
    n_elements: int = math.prod(next(v for v in values if isinstance(v, torch.Tensor)).shape)
    name, kind = name_of(node.target), kind_of_node(node)
    if name.startswith(_LISTS):
        name = name.removeprefix(_LISTS)
        n_elements = sum(math.prod(each.shape) for each in values)
    if kind is OpKind.MATMUL:
        return int(2 * n_elements * _shape(node, _MATMULS[name])[-1])
    if name in _FLOPS_OF_ARGUMENT:
        place, each = _FLOPS_OF_ARGUMENT[name]
        return each * math.prod(_shape(node, place))
    if name == "convolution":
        return 2 * n_elements * math.prod(_shape(node, 1)[1:])
    if name.startswith(_ATTENTION):
        return _attention_flops(node, name)
    if kind in (OpKind.VIEW, OpKind.OPAQUE) or name in _MOVES:
        return 0
    if node.kwargs.get("approximate") == "tanh" and name in _FLOPS_BY_TANH:
        return _FLOPS_BY_TANH[name] * n_elements
    if name in _FLOPS_AN_ELEMENT:
        return _FLOPS_AN_ELEMENT[name] * n_elements
    return math.prod(_shape(node, 0)) if kind is OpKind.REDUCTION else n_elements


def _shape(node: torch.fx.Node, place: int) -> tuple[int, ...]:
    """The shape of the tensor that an operator is given in that place."""
    argument = node.args[place]
    assert isinstance(argument, torch.fx.Node)
    return tuple(argument.meta["val"].shape)


def _attention_flops(node: torch.fx.Node, name: str) -> int:
    """The matmuls of a fused attention: two forward, five backward with the scores made anew."""
    backward = name.endswith(_BACKWARD)
    query, key = _shape(node, int(backward)), _shape(node, int(backward) + 1)
    return (5 if backward else 2) * 2 * math.prod(query) * key[-2]
