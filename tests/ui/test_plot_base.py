"""What every plot keeps to."""

import pytest
from PySide6.QtWidgets import QApplication

from explorer.ui.plot_base import dot_layer
from tests.conftest import CHECKOUT


@pytest.mark.usefixtures("qapp")
def test_dots_are_not_painted_from_wrapped_memory() -> None:
    """An array wrapped by its address ends the process where the address was another object's."""
    assert QApplication.instance() is not None
    layer = dot_layer(hoverable=True)
    assert layer.opts["useCache"] is False
    assert layer.opts["hoverable"] is True


def test_all_dots_are_made_so() -> None:
    sources = (CHECKOUT / "explorer" / "ui").rglob("*.py")
    makers = [path.name for path in sources if "ScatterPlotItem(" in path.read_text("utf-8")]
    assert makers == ["plot_base.py"]
