"""Features: what a server may be too old to read.

A server ignores fields of requests that it does not know. An add with a limit of attempts would be
stored without it, so the client asks first what the server said when it connected.
"""

from queueber.errors import FailedPrecondition
from queueber.model import Feature, NewItems, ServerInfo


def check_new_items(server: ServerInfo, items: NewItems) -> None:
    """Refuse items that the server would store without what they are to have."""
    if items.options:
        check_feature(server, Feature.ITEM_OPTIONS, "attempts, backoff, timeout, expires")
    if items.after or items.after_batch:
        check_feature(server, Feature.AFTER, "after, after_batch")


def check_feature(server: ServerInfo, feature: Feature, asked: str) -> None:
    """Refuse what the server would ignore."""
    if feature not in server.features:
        raise FailedPrecondition(
            f"{asked}: the server has version {server.version}, which does not know this and would "
            "ignore it; upgrade the server"
        )
