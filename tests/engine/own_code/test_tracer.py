"""The graph of operators as they ran: which value each takes."""

from typing import Any

import torch

from explorer.engine.own_code.tracer import Tracer


def test_an_input_that_an_operator_hands_out_again_stays_the_input() -> None:
    """cuDNN's RNNs hand out the buffer of their weights beside their results."""
    library = torch.library.Library("explorer_tracer_test", "DEF")  # type: ignore[no-untyped-call]
    define: Any = library.define
    implement: Any = library.impl
    define("doubled(Tensor x) -> (Tensor, Tensor)")
    implement("doubled", lambda x: (x * 2, x), "CPU")
    x = torch.ones(4)
    tracer = Tracer({"x": x}, lambda _file: False)
    with tracer:
        y, _ = torch.ops.explorer_tracer_test.doubled.default(x)
        result = x + y
    graph = tracer.finished(result).graph
    [added] = [node for node in graph.nodes if node.target is torch.ops.aten.add.Tensor]
    first, second = added.all_input_nodes
    assert first.op == "placeholder"
    assert (second.args[0].name, second.args[1]) == ("doubled_default", 0)
