"""The one style sheet, filled from the theme table: what palettes alone cannot say."""

from string import Template

from explorer.ui.theme import Theme

_SHEET = Template("""
* { font-family: "Inter", "Noto Sans CJK SC"; font-size: 14px; color: $text; }
QMainWindow, QWidget#root { background: $bg; }
QFrame#panel { background: $panel; border: 1px solid $line; border-radius: 10px; }
QFrame#popup { background: $panel; border: 1px solid $memory_line; border-radius: 10px; }
QLabel { background: transparent; }
QLabel#brand { font-size: 18px; font-weight: 700; }
QLabel#panelTitle { font-size: 15px; font-weight: 600; }
QLabel#panelHint, QLabel#muted { color: $muted; font-size: 13px; }
QLabel#sentence { color: $muted; font-size: 13px; }
QLabel#sweepFinding { font-size: 13px; font-weight: 600; }
QLabel#fieldError { color: $warning; font-size: 13px; }
QLabel#fieldName { font-weight: 600; }
QLabel#badge { background: $write; color: $on_accent; border-radius: 6px; padding: 1px 9px;
  font-size: 15px; font-weight: 700; }
QLabel#badgeOrigin { color: $write; font-size: 15px; font-weight: 600; }
QLabel#status { color: $muted; font-size: 13px; }
QLabel#statusWarning { color: $warning; font-size: 13px; }
QLabel#worker { color: $muted; font-weight: 600; }
QLabel#worker[phase="ready"] { color: $compute; }
QLabel#worker[phase="failed"] { color: $warning; }
QFrame#message { background: $raised; border: 1px solid $memory_line; border-radius: 8px; }
QFrame#message[error="true"] { border: 1px solid $warning; }
QComboBox, QPushButton, QToolButton, QLineEdit {
  background: $raised; border: 1px solid $line; border-radius: 7px; padding: 4px 12px;
  min-height: 22px; }
QLineEdit { background: $sunken; padding: 4px 8px; selection-background-color: $compute;
  selection-color: $on_accent; }
QLineEdit[invalid="true"], QPushButton[invalid="true"] { border: 1px solid $warning; }
QToolButton { padding: 3px 8px; min-height: 20px; font-weight: 600; }
QToolButton#flat { background: transparent; border: 1px solid transparent; }
QToolButton#flat:focus { border: 2px solid $text; }
QComboBox { padding-right: 4px; }
QComboBox::drop-down { border: 0; width: 28px; }
QComboBox::down-arrow { image: none; width: 0; height: 0; }
QComboBox QAbstractItemView { background: $panel; border: 1px solid $memory_line; outline: 0;
  selection-background-color: $raised; selection-color: $text; }
QComboBox#caption { background: transparent; border: 1px solid transparent; font-weight: 600;
  font-size: 13px; padding: 0 2px; min-height: 18px; }
QComboBox#caption:focus { border: 1px solid $text; padding: 0 2px; }
QPushButton:hover, QToolButton:hover, QComboBox:hover { border: 1px solid $memory_line; }
QPushButton:checked, QToolButton:checked { border: 1px solid $compute; color: $compute; }
QPushButton:disabled, QToolButton:disabled, QComboBox:disabled { color: $faint; }
QPushButton:focus, QComboBox:focus, QToolButton:focus, QLineEdit:focus {
  border: 2px solid $text; padding-top: 3px; padding-bottom: 3px; }
QPushButton#small { padding: 2px 9px; font-size: 13px; min-height: 20px; }
QPushButton#small:focus { padding: 1px 8px; }
QPushButton#run { background: $compute; color: $on_accent; font-weight: 700; border: 0;
  padding: 5px 14px; }
QPushButton#run:focus { border: 2px solid $text; padding: 3px 12px; }
QPushButton#run:disabled { background: $raised; color: $faint; }
QPushButton#cancel { background: $warning; color: $on_accent; font-weight: 700; border: 0;
  padding: 5px 14px; }
QPushButton#cancel:focus { border: 2px solid $text; padding: 3px 12px; }
QToolButton::menu-indicator { image: none; width: 0; }
QToolButton#icon { background: transparent; border: 1px solid transparent; padding: 0; }
QToolButton#icon:hover { background: $raised; }
QToolButton#icon:focus { border: 2px solid $text; padding: 0; }
QPushButton#segment { padding: 1px 5px; font-size: 12.5px; min-height: 20px; border-radius: 0;
  background: $raised; color: $muted; }
QPushButton#segment[place="first"] { border-top-left-radius: 7px; border-bottom-left-radius: 7px; }
QPushButton#segment[place="middle"] { border-left: 0; border-right: 0; }
QPushButton#segment[place="last"] { border-top-right-radius: 7px;
  border-bottom-right-radius: 7px; }
QPushButton#segment[place="alone"] { border-radius: 7px; color: $text; }
QPushButton#segment:hover { color: $text; }
QPushButton#segment:checked { background: $memory_top; color: $text; border-color: $memory_line; }
QPushButton#segment:focus { border: 2px solid $text; padding: 0 4px; }
QPushButton#segment:disabled { color: $faint; }
QLineEdit#plan { padding: 1px 7px; min-height: 20px; font-family: "JetBrains Mono";
  font-size: 12px; color: $muted; }
QLineEdit#plan:focus { color: $text; padding: 0 6px; }
QLabel#saving { font-size: 13px; font-weight: 600; color: $muted; }
QLabel#saving[kind="better"] { color: $compute; }
QLabel#saving[kind="worse"] { color: $warning; }
QFrame#callout { background: $raised; border: 1px solid $memory_line; border-radius: 9px; }
QLabel#calloutText { font-size: 13px; }
QPlainTextEdit#raw { background: $sunken; border: 1px solid $line; border-radius: 6px;
  font-family: "JetBrains Mono"; font-size: 12px; color: $muted; }
QTabBar { background: transparent; }
QTabBar::tab { background: transparent; color: $muted; font-size: 15px; font-weight: 600;
  padding: 4px 2px 6px 2px; margin: 4px 18px 0 0; border-bottom: 2px solid transparent; }
QTabBar::tab:selected { color: $text; border-bottom: 2px solid $compute; }
QTabBar::tab:hover { color: $text; }
QTabBar::tab:focus { color: $text; border-bottom: 2px solid $text; }
QSplitter { background: transparent; }
QSplitter::handle { background: transparent; }
QSplitter::handle:hover { background: $line; border-radius: 3px; }
QScrollArea { background: transparent; border: 0; }
QScrollArea > QWidget > QWidget#rows { background: transparent; }
QLabel#doctorName { font-weight: 600; }
QLabel#doctorState { color: $compute; font-weight: 600; }
QLabel#doctorState[missing="true"] { color: $warning; }
QLabel#doctorText { color: $muted; font-size: 13px; }
QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle { background: $line; border-radius: 4px; min-height: 24px; min-width: 24px; }
QScrollBar::handle:hover { background: $faint; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QTableView { background: transparent; border: 0; gridline-color: $line; outline: 0;
  alternate-background-color: $raised; selection-background-color: $raised;
  selection-color: $text; font-size: 13px; }
QTableView::item { padding: 2px 6px; }
QTableView::item:selected { background: $memory_top; }
QListWidget#sheet { background: transparent; border: 0; outline: 0; }
QTreeView { background: transparent; border: 0; outline: 0; font-size: 13px;
  selection-background-color: $memory_top; selection-color: $text; }
QTreeView::item { padding: 1px 4px; }
QTreeView::item:selected { background: $memory_top; }
QTreeView:focus { border: 1px solid $memory_line; border-radius: 6px; }
QAbstractScrollArea::corner { background: transparent; border: 0; }
QTableView:focus { border: 1px solid $memory_line; border-radius: 6px; }
QHeaderView { background: transparent; }
QHeaderView::section { background: transparent; color: $muted; border: 0;
  border-bottom: 1px solid $line; padding: 3px 6px; font-size: 13px; font-weight: 500; }
QTableCornerButton::section { background: transparent; border: 0; }
QSlider:horizontal { min-height: 22px; }
QSlider::groove:horizontal { height: 6px; background: $line; border-radius: 3px; }
QSlider::sub-page:horizontal { background: $playhead; border-radius: 3px; }
QSlider::handle:horizontal { width: 16px; height: 16px; margin: -5px 0; border-radius: 8px;
  background: $playhead; }
QSlider:focus { border: 1px solid $text; border-radius: 6px; }
QMenu { background: $panel; border: 1px solid $memory_line; border-radius: 8px; padding: 5px; }
QMenu::item { padding: 5px 18px; border-radius: 5px; }
QMenu::item:selected { background: $raised; }
QMenu::item:disabled { color: $faint; }
QToolTip { background: $raised; color: $text; border: 1px solid $memory_line; padding: 5px 7px;
  font-size: 13px; }
""")


def style_sheet(theme: Theme) -> str:
    """The sheet in the colours of a theme."""
    return _SHEET.substitute(theme.colors())
