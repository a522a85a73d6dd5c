"""Hand-written Triton kernels: one fused operator a file, usable without the explorer."""
