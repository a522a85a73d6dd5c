"""The parameter form: types that a device lacks, a length as a slider, variants side by side."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from explorer.model.device import DtypeAbility
from explorer.model.errors import UsageError
from explorer.model.messages import RunRequest
from explorer.ui.chain_form import ChainForm
from explorer.ui.form_fields import ChoicePicker, LengthRow
from explorer.ui.header import Header
from explorer.ui.param_sweep_state import compared_points, swept_values
from explorer.ui.store import Store
from tests.ui.drive import click, press
from tests.ui.fake_worker import ABILITIES

KEY = Qt.Key
NO_FP16 = "fp16 has no fast matmul on this CPU; take bf16."


def lacking(name: str, reason: str = NO_FP16) -> DtypeAbility:
    return DtypeAbility(name=name, available=False, reason=reason)


@pytest.fixture
def store() -> Store:
    """Knows a device that lacks fp16."""
    store = Store()
    store.choose_chain("elementwise")
    device = replace(ABILITIES.devices[0], dtypes=(lacking("fp16"),))
    store.set_abilities(replace(ABILITIES, devices=(device,)))
    return store


@pytest.fixture
def form(qtbot: QtBot, store: Store) -> ChainForm:
    form = ChainForm(store)
    qtbot.addWidget(form)
    form.show()
    return form


def dtype_field(form: ChainForm) -> ChoicePicker:
    field = form.field("dtype")
    assert isinstance(field, ChoicePicker)
    return field


def length_of(form: ChainForm) -> LengthRow:
    found = form.findChild(LengthRow)
    assert isinstance(found, LengthRow)
    return found


class TestTypes:
    def test_one_that_the_device_lacks_is_grey_and_says_why(self, form: ChainForm) -> None:
        field = dtype_field(form)
        place = field.findText("fp16")
        index = field.model().index(place, 0)
        assert not index.flags() & Qt.ItemFlag.ItemIsEnabled
        assert NO_FP16 in str(field.itemData(place, Qt.ItemDataRole.ToolTipRole))
        assert field.itemData(place, Qt.ItemDataRole.AccessibleDescriptionRole) == NO_FP16
        other = field.model().index(field.findText("bf16"), 0)
        assert other.flags() & Qt.ItemFlag.ItemIsEnabled

    def test_the_keyboard_passes_it_over_and_hears_why(self, form: ChainForm, store: Store) -> None:
        field = dtype_field(form)
        field.setCurrentIndex(field.findText("fp16") - 1)
        press(field, KEY.Key_Down)
        assert store.state.parameters.texts.get("dtype") != "fp16"
        assert form.message("dtype") == NO_FP16
        assert field.accessibleDescription() == NO_FP16

    def test_the_store_refuses_it(self, store: Store) -> None:
        before = store.state.parameters
        store.set_parameter("dtype", "fp16")
        assert store.state.parameters == before
        assert store.state.notice is not None
        assert store.state.notice.sentence == NO_FP16

    def test_another_device_may_lack_what_was_picked(self, store: Store) -> None:
        store.set_parameter("dtype", "bf16")
        device = replace(ABILITIES.devices[0], dtypes=(lacking("bf16", "No bf16 here."),))
        store.set_abilities(replace(ABILITIES, devices=(device,)))
        assert store.state.parameters.errors == {"dtype": "No bf16 here."}

    def test_a_sweep_leaves_it_out_unless_it_is_named(self, store: Store) -> None:
        store.choose_swept("dtype")
        assert "fp16" not in swept_values(store.state)
        store.set_swept_text("dtype", "fp32,fp16")
        with pytest.raises(UsageError, match="fp16 has no fast matmul"):
            swept_values(store.state)


class TestLength:
    def test_the_slider_sets_the_length_and_follows_it(self, form: ChainForm, store: Store) -> None:
        row = length_of(form)
        assert (row.slider.minimum(), row.slider.maximum()) == (1, 32)
        row.slider.setFocus()
        press(row.slider, KEY.Key_Right)
        assert store.state.parameters.values["k"] == 9
        store.set_parameter("k", "31")
        assert row.slider.value() == 31

    def test_the_button_beside_it_sweeps_it(
        self, qtbot: QtBot, form: ChainForm, store: Store
    ) -> None:
        with qtbot.waitSignal(store.param_sweep_requested):
            click(length_of(form).sweep)
        assert swept_values(store.state) == (1, 2, 4, 8, 16, 32)
        assert not form.isVisible()

    def test_other_chains_have_no_slider(self, form: ChainForm, store: Store) -> None:
        store.choose_chain("rmsnorm")
        assert all(not row.isVisibleTo(form) for row in form.findChildren(LengthRow))


class TestVariants:
    request = RunRequest(chain="qkv")

    def test_the_form_and_the_header_say_that_all_run(
        self, qtbot: QtBot, form: ChainForm, store: Store
    ) -> None:
        header = Header(store)
        qtbot.addWidget(header)
        store.choose_chain("qkv")
        field = form.field("projections")
        assert isinstance(field, ChoicePicker)
        assert field.currentText() == "three | one"
        assert form.message("projections").startswith("three and one run side by side")
        assert "projections three | one" in header.parameters.text()

    def test_one_that_is_picked_runs_alone(self, form: ChainForm, store: Store) -> None:
        store.choose_chain("qkv")
        points = compared_points(store.state, self.request)
        assert [point.parameters["projections"] for point in points] == ["three", "one"]
        assert all(point.timing_s == self.request.timing_s for point in points)
        field = form.field("projections")
        assert isinstance(field, ChoicePicker)
        field.textActivated.emit("one")
        assert compared_points(store.state, self.request) == ()
        field.textActivated.emit("three | one")
        assert len(compared_points(store.state, self.request)) == 2

    def test_other_chains_have_none(self, store: Store) -> None:
        assert compared_points(store.state, self.request) == ()
