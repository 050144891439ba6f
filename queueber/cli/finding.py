"""A queue by name, for commands that must not create one because of a slip of the finger."""

from queueber.client import Client, Queue
from queueber.errors import NotFound
from queueber.model import Stats


def find_stats(client: Client, name: str) -> Stats:
    """The queue as it is. Asking the server for the queue itself would create it."""
    for each in client.queues():
        if each.name == name:
            return each
    raise NotFound(f"there is no queue {name!r}; create it, or check the name")


def existing_queue(client: Client, name: str) -> Queue:
    find_stats(client, name)
    return client.queue(name)
