"""Where in a torch.nn.Module a node of a graph was made, however the graph came about."""

import re

from torch import fx

_ITEM = re.compile(r"\[['\"]?(\w+)['\"]?\]")


def module_path(node: fx.Node) -> str | None:
    """The path of the innermost module from the outermost, ``layers.0.norm``; None if none is told.

    Export begins such a path with a name of its own, Dynamo with an expression, ``L['fn'].norm``.
    """
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return None
    path = str(list(stack.values())[-1][0])
    _, _, inner = path.partition(".")
    return _ITEM.sub(r".\1", inner)
