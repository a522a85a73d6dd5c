"""The torch of a GPU machine, often another release, has what is relied on."""

import pytest
import torch

from explorer.engine.internals import PLACES, internal

pytestmark = [
    pytest.mark.gpu,
    # torch's own modules use what torch deprecates.
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]


@pytest.mark.parametrize("place", PLACES)
def test_this_torch_has_everything_where_it_is_looked_for(place: str) -> None:
    assert internal(place) is not None, torch.__version__
