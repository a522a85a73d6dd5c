"""What a call handed out, as the tensor that most chains hand out."""

import torch

from explorer.engine.prepared import Returned


def only(returned: Returned) -> torch.Tensor:
    """The one tensor that a call handed out."""
    assert isinstance(returned, torch.Tensor)
    return returned
