"""Puts a question to the worker that has one answer, and shows how it gets on."""

from typing import TypeVar

from explorer.cli.progress import ProgressDisplay
from explorer.model.errors import ExplorerError, UsageError
from explorer.model.messages import Progress, Reply, Request, RequestFailed
from explorer.worker.blocking import WorkerClient

Answer = TypeVar("Answer", bound=Reply)


def ask(
    client: WorkerClient, request: Request, answer: type[Answer], display: ProgressDisplay
) -> Answer:
    """Ask, and wait for the answer.

    Args:
        client: The worker.
        request: The question.
        answer: The kind of reply that answers it.
        display: Where progress is shown.

    Raises:
        UsageError: The worker refused what was asked for.
        WorkerEndedError: It ended before it had answered.
        ExplorerError: It could not answer; the sentence says why.
    """
    found: Answer | None = None
    # To the end: leaving early would end the worker, which has more to do.
    for reply in client.request(request):
        if isinstance(reply, Progress):
            display.update(reply)
        elif isinstance(reply, answer):
            found = reply
        elif isinstance(reply, RequestFailed):
            raise (UsageError if reply.usage else ExplorerError)(reply.sentence)
    if found is None:
        raise ExplorerError("The worker gave no answer; try once more.")
    return found
