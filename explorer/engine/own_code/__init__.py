"""Somebody's own function or module as a chain: loaded, called, captured, compared."""

from explorer.engine.own_code.code import own_chain_code
from explorer.engine.own_code.errors import exit_sentence, line_at_fault
from explorer.engine.own_code.exits import raising_hard_exits
from explorer.engine.own_code.subject import OwnCaptured, capture_callee, capture_own

__all__ = [
    "OwnCaptured",
    "capture_callee",
    "capture_own",
    "exit_sentence",
    "line_at_fault",
    "own_chain_code",
    "raising_hard_exits",
]
