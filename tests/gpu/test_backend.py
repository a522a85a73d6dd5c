"""The backend on the GPU: training with dropout, updates in place, groups as kernels."""

import functools

import pytest
import torch

import explorer
from explorer.engine.measure.trace import trace

pytestmark = [
    pytest.mark.gpu,
    # torch's own modules use what torch deprecates.
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]
CUDA = torch.device("cuda")


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch.compiler.reset()
    torch.manual_seed(0)


def test_training_with_dropout_follows_the_mask_it_drew() -> None:
    def gated(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(torch.nn.functional.silu(x) * weight, 0.25)

    x = torch.randn(512, 512, device=CUDA, requires_grad=True)
    weight = torch.randn(512, device=CUDA, requires_grad=True)
    backend = explorer.backend("silu+mul|native_dropout", backward="each")
    y = torch.compile(gated, backend=backend)(x, weight)
    torch.autograd.backward(y.sum())
    assert 0.73 < float((y != 0).double().mean()) < 0.77
    mine = [x.grad, weight.grad]
    kept = (y.detach() != 0) / 0.75
    expected = torch.autograd.grad((torch.nn.functional.silu(x) * weight * kept).sum(), [x, weight])
    for found, wanted in zip(mine, expected, strict=True):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("plan", ["all", "each"])
def test_adam_steps_in_place_as_eager_does(plan: str) -> None:
    def stepped(compiled: bool) -> torch.Tensor:
        parameter = torch.linspace(-1, 1, 4096, device=CUDA, requires_grad=True)
        optimizer = torch.optim.Adam([parameter], lr=0.1, capturable=True, foreach=False)
        parameter.grad = torch.linspace(0, 1, 4096, device=CUDA)
        backend = explorer.backend(plan)
        step = backend.compile(optimizer.step) if compiled else optimizer.step
        for _ in range(2):
            step()
        return parameter.detach()

    torch.testing.assert_close(stepped(compiled=True), stepped(compiled=False))


def test_each_group_is_a_kernel_of_its_own() -> None:
    def scores(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 0.125 + mask, -1)

    given = (torch.randn(4, 256, 256, device=CUDA), torch.randn(256, 256, device=CUDA))
    for plan, count in (("mul+add+softmax", 1), ("mul+add|softmax", 2), ("each", 3)):
        torch.compiler.reset()
        call = explorer.backend(plan).compile(scores)
        torch.testing.assert_close(call(*given), scores(*given))
        call(*given)
        events = trace(functools.partial(call, *given))
        launched = [event.name for event in events if event.name.startswith("triton_")]
        assert len(launched) == count, launched


@pytest.mark.parametrize("plan", ["all", "each"])
def test_memory_that_is_not_aligned_is_read_and_updated_all_the_same(plan: str) -> None:
    """Pieces are compiled for inputs without memory, which pass for aligned to 16 bytes."""

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(0.5).add_(y)
        return torch.sin(x)

    def given() -> list[torch.Tensor]:
        return [torch.linspace(-2, i, 64 * 64 + 1, device=CUDA)[1:].view(64, 64) for i in (1, 2)]

    mine, expected = given(), given()
    assert mine[0].data_ptr() % 16
    result = explorer.backend(plan).compile(step)(*mine)
    torch.testing.assert_close(result, step(*expected))
    torch.testing.assert_close(mine, expected)
