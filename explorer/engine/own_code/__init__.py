"""Somebody's own function or module as a chain: loaded, called, captured, compared."""

from explorer.engine.own_code.code import own_chain_code
from explorer.engine.own_code.errors import line_at_fault
from explorer.engine.own_code.subject import OwnCaptured, capture_callee, capture_own

__all__ = ["OwnCaptured", "capture_callee", "capture_own", "line_at_fault", "own_chain_code"]
