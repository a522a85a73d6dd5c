"""The traffic scene: memory, kernels and the bytes between them, as a pure function of time."""
