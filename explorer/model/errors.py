"""The errors a user may see: one clear sentence each, with the remedy in it."""


class ExplorerError(Exception):
    """Something failed for a reason that one sentence can tell; ``str(error)`` is the sentence."""


class UsageError(ExplorerError):
    """The user asked for something that does not exist or is out of range (exit code 2)."""


class RecordingError(ExplorerError):
    """A recording cannot be read or written (exit code 1)."""
