"""The checks of callbacks."""

from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import (
    ATTRIBUTES_BYTES_MAX,
    ATTRIBUTES_MAX,
    BATCH_NAME_BYTES_MAX,
    CALLBACK_BYTES_MAX,
    KEY_BYTES_MAX,
    PRIORITY_MAX,
)
from queueber.model import Callback
from queueber.service.validate.arguments import check_queue_name, check_text
from queueber.service.validate.item_options import check_own_options
from queueber.service.validate.items import attributes_bytes, check_attributes

_OWN_ATTRIBUTES = 8
_OWN_BYTES = 1024 + BATCH_NAME_BYTES_MAX
"""What the server says of the batch: its names, counts and digests."""


def check_callback(callback: Callback, item_bytes_max: int) -> None:
    check_queue_name(callback.to, "to")
    if callback.key:
        check_text("key", callback.key, KEY_BYTES_MAX)
    if callback.priority > PRIORITY_MAX:
        raise InvalidArgument(
            f"priority: {callback.priority} is too high; it must be 0 to {PRIORITY_MAX}"
        )
    check_attributes([callback.attributes], 1)
    check_own_options(callback.options)
    own_bytes = attributes_bytes(callback.attributes)
    for given, limit, what in (
        (len(callback.attributes), ATTRIBUTES_MAX - _OWN_ATTRIBUTES, "there are {}"),
        (own_bytes, ATTRIBUTES_BYTES_MAX - _OWN_BYTES, "they have {} bytes"),
    ):
        if given > limit:
            raise InvalidArgument(
                f"attributes: {what.format(given)}; the limit for a callback is {limit}"
            )
    limit = min(item_bytes_max, CALLBACK_BYTES_MAX)
    size = len(callback.contents) + own_bytes
    if size > limit:
        raise ResourceExhausted(
            f"contents: contents and attributes have {size} bytes; the limit for a callback is "
            f"{limit}"
        )
