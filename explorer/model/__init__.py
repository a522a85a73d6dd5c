"""Plain frozen data and arithmetic: no Qt, no torch."""
