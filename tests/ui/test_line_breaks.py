"""Long paths and names are broken into lines, and stay whole for a screen reader."""

from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from explorer.chains.own import own_chain
from explorer.model.own_code import OwnCode
from explorer.ui.chain_form import ChainForm
from explorer.ui.line_breaks import breakable, unbroken
from explorer.ui.own_dialog import OwnDialog
from explorer.ui.own_form import Field, OwnFields
from explorer.ui.store import Store
from explorer.ui.theme import DARK

WHERE = "/srv/somebody/with/a/folder/in/a_folder_in_another_folder/" + "long_" * 12 + "net.py"


def test_only_long_words_may_be_broken() -> None:
    said = f"{WHERE} is not there; name a Python file, file.py:function."
    shown = breakable(said)
    assert unbroken(shown) == said
    # Not a word of its own: "file.py:function." is short.
    assert shown.startswith("/\u200bsrv/\u200bsomebody/\u200b")
    assert shown.endswith(".\u200bpy is not there; name a Python file, file.py:function.")


def test_own_code_s_form_shows_all_of_its_path(qapp: QApplication, qtbot: QtBot) -> None:
    del qapp
    store = Store()
    store.open_own(f"{WHERE}:gelu_mlp", OwnCode(inputs="x=fp32[rows=64,64]"))
    form = ChainForm(store)
    qtbot.addWidget(form)
    form.show()
    QApplication.sendPostedEvents()
    for text in form.about:
        metrics = QFontMetricsF(text.font())
        pieces = text.text().replace("\u200b", "\n").split("\n")
        assert max(map(metrics.horizontalAdvance, pieces)) <= text.width()
        assert text.height() >= text.heightForWidth(text.width())
    assert unbroken(form.about[0].text()) == own_chain(f"{WHERE}:gelu_mlp", OwnCode()).title
    assert unbroken(form.about[1].text()).startswith(f"from {WHERE}\n")


def test_the_dialog_is_as_high_as_its_sentences(qtbot: QtBot) -> None:
    dialog = OwnDialog(DARK, (), lambda _: False)
    qtbot.addWidget(dialog)
    dialog.show()
    layout = dialog.layout()
    assert layout is not None
    assert dialog.height() == layout.heightForWidth(dialog.width())
    first = dialog.height()
    dialog.fill(OwnFields(where=WHERE, what="gelu_mlp"))
    assert dialog.height() > first
    assert dialog.height() == layout.heightForWidth(dialog.width())
    QApplication.processEvents()
    for said in dialog.findChildren(QLabel):
        assert said.height() >= said.heightForWidth(said.width()), said.text()
    assert (
        dialog.message(Field.WHERE)
        == f"{WHERE} is not there; name a Python file, file.py:function."
    )
