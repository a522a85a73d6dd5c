"""The window: everything that imports Qt, and nothing that imports torch."""
