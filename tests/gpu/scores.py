"""The size of the attention scores whose plans several files look at."""

SCORES = {"batch": 2, "heads": 16, "seq_len": 4096}
"""As by default on a GPU: 1 GiB of scores in bf16, many times the L2."""
