"""What is known of an ATen operator: whether it is a view, how it touches memory, its FLOPs."""

import math
import operator
from typing import Any

import torch

from explorer.model.opgraph import OpKind

_ATEN = torch.ops.aten

_MATMULS = {
    _ATEN.mm.default,
    _ATEN.bmm.default,
    _ATEN.addmm.default,
    _ATEN.baddbmm.default,
    _ATEN.addbmm.default,
    _ATEN.mv.default,
    _ATEN.dot.default,
}
# By name: torch's own tag for them is younger than the oldest torch that runs here.
_REDUCTIONS = frozenset(
    f"aten::{name}"
    for name in (
        *("_softmax", "_log_softmax", "logsumexp", "cumsum", "native_layer_norm"),
        *("native_group_norm", "_fused_rms_norm", "sum", "mean", "prod", "amax", "amin", "aminmax"),
        *("max", "min", "argmax", "argmin", "var", "var_mean", "std", "std_mean", "any", "all"),
        *("norm", "linalg_vector_norm"),
    )
)
_FLOPS_AN_ELEMENT: dict[Any, int] = {
    # A comparison for the maximum, a subtraction, exp, an addition and a division.
    _ATEN._softmax.default: 5,
    # A comparison and a multiplication; making the random number is integer work.
    _ATEN.native_dropout.default: 2,
    # For the mean an addition; for the variance a subtraction, a square and an addition; then a
    # subtraction, a multiplication, the weight and the bias.
    _ATEN.native_layer_norm.default: 8,
    # A negation, exp, an addition and a division.
    _ATEN.silu.default: 4,
    # A product into the erf, the erf, an addition and two products behind it.
    _ATEN.gelu.default: 5,
    # A subtraction, a multiplication and an addition.
    _ATEN.lerp.Scalar: 3,
    # The product (or the quotient), its factor, and the addition.
    _ATEN.addcmul.default: 3,
    _ATEN.addcdiv.default: 3,
}
"""Where one operation an element of the result would be wrong."""
_GELU_BY_TANH_FLOPS = 9
"""Two products for the cube, one each for its factor and the whole, and an addition lead into the
tanh; an addition and two products follow it."""


def is_view(target: Any) -> bool:
    """Whether the operator only looks at its input's memory in another way: it launches nothing."""
    if target is operator.getitem:
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if target in (_ATEN._unsafe_view.default, _ATEN.alias.default, _ATEN.detach.default):
        return True
    return any(
        result.alias_info is not None and not result.alias_info.is_write
        for result in target._schema.returns
    )


def kind_of(target: Any) -> OpKind:
    """How an operator touches memory."""
    if not isinstance(target, torch._ops.OpOverload):
        return OpKind.OPAQUE
    if is_view(target):
        return OpKind.VIEW
    if target in _MATMULS:
        return OpKind.MATMUL
    if torch.Tag.nondeterministic_seeded in target.tags:
        return OpKind.RANDOM
    if torch.Tag.pointwise in target.tags:
        return OpKind.ELEMENTWISE
    if target._schema.name in _REDUCTIONS:
        return OpKind.REDUCTION
    return OpKind.OPAQUE


def flops_of(node: torch.fx.Node) -> int:
    """Floating-point operations of a node: a multiply-add counts two, exp and the like one.

    An elementwise op counts one an element of its result, a reduction one an element that it
    reduces, where nothing else is known of it; a power counts as one, whatever the exponent.
    """
    value = node.meta["val"]
    n_elements: int = math.prod((value[0] if isinstance(value, tuple | list) else value).shape)
    inputs = [a.meta["val"] for a in node.args if isinstance(a, torch.fx.Node)]
    kind = kind_of(node.target)
    if kind is OpKind.MATMUL:
        # The last two are the factors; addmm and its like have the addend before them.
        return int(2 * n_elements * inputs[-2].shape[-1])
    if kind in (OpKind.VIEW, OpKind.OPAQUE):
        return 0
    if node.target is _ATEN.gelu.default and node.kwargs.get("approximate") == "tanh":
        return _GELU_BY_TANH_FLOPS * n_elements
    if node.target in _FLOPS_AN_ELEMENT:
        return _FLOPS_AN_ELEMENT[node.target] * n_elements
    return int(math.prod(inputs[0].shape)) if kind is OpKind.REDUCTION else n_elements
