"""Somebody's own function or module as a chain: loaded, called, captured, compared."""

from explorer.engine.own_code.code import own_chain_code
from explorer.engine.own_code.subject import OwnCaptured, capture_callee, capture_own

__all__ = ["OwnCaptured", "capture_callee", "capture_own", "own_chain_code"]
