"""Kernel Explorer: where do the bytes go when operators are fused?"""

__version__ = "0.1.0"
