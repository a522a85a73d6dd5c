"""The worker: a process of its own for everything that touches torch, and its client."""
