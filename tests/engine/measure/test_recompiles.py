"""Which guards fail while compiled code is measured, and what is said of it."""

import torch

from explorer.engine.measure.recompiles import recompile_doubts, watching_recompiles


class Counting(torch.nn.Module):
    """Counts its calls in a Python number, as code to be compiled should not."""

    def __init__(self) -> None:
        super().__init__()
        self.n_calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.n_calls += 1
        return x + 1


def test_a_number_that_changes_with_each_call_is_told() -> None:
    torch.compiler.reset()
    compiled = torch.compile(Counting(), backend="eager")
    compiled(torch.ones(2))
    with watching_recompiles() as guards:
        compiled(torch.ones(2))
        compiled(torch.ones(2))
    torch.compiler.reset()
    assert len(guards) == 2
    [sentence] = recompile_doubts(guards)
    assert "(2×)" in sentence
    assert f"no longer held: {guards[-1]};" in sentence
    assert guards[-1].endswith(".n_calls == 1")


def test_code_that_is_compiled_once_has_nothing_to_tell() -> None:
    torch.compiler.reset()
    compiled = torch.compile(torch.nn.Identity(), backend="eager")
    compiled(torch.ones(2))
    with watching_recompiles() as guards:
        compiled(torch.ones(2))
    torch.compiler.reset()
    assert recompile_doubts(guards) == ()
