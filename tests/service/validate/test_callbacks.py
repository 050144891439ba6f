"""The checks of callbacks, at their limits."""

from dataclasses import replace

import pytest

from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import (
    ATTRIBUTES_BYTES_MAX,
    ATTRIBUTES_MAX,
    BATCH_NAME_BYTES_MAX,
    CALLBACK_BYTES_MAX,
    KEY_BYTES_MAX,
    MIB,
    QUEUE_NAME_CHARS_MAX,
)
from queueber.model import Callback, ItemOptions, Receipt, receipt_attributes
from queueber.service.validate.callbacks import check_callback
from queueber.service.validate.items import attributes_bytes

CALLBACK = Callback("reports", b"x")
OWN_BYTES = 1024 + BATCH_NAME_BYTES_MAX


@pytest.mark.parametrize(
    "callback",
    [
        replace(CALLBACK, key="k" * KEY_BYTES_MAX),
        replace(CALLBACK, attributes={str(n): "" for n in range(ATTRIBUTES_MAX - 8)}),
        replace(CALLBACK, attributes={"n": "v" * (ATTRIBUTES_BYTES_MAX - OWN_BYTES - 1)}),
        replace(CALLBACK, contents=bytes(CALLBACK_BYTES_MAX)),
    ],
)
def test_what_is_at_its_limit_is_taken(callback: Callback) -> None:
    check_callback(callback, MIB)


@pytest.mark.parametrize(
    ("callback", "error", "message"),
    [
        (replace(CALLBACK, to=""), InvalidArgument, "to: '' is not a queue name"),
        (replace(CALLBACK, key="k" * (KEY_BYTES_MAX + 1)), InvalidArgument, "key: "),
        (replace(CALLBACK, options=ItemOptions(-1)), InvalidArgument, "options.attemptsMax: -1"),
        (replace(CALLBACK, priority=10), InvalidArgument, "priority: 10 is too high"),
        (
            replace(CALLBACK, attributes={"n": "v" * (ATTRIBUTES_BYTES_MAX - OWN_BYTES)}),
            InvalidArgument,
            "they have 6913 bytes; the limit for a callback is 6912",
        ),
        (
            replace(CALLBACK, contents=bytes(CALLBACK_BYTES_MAX + 1)),
            ResourceExhausted,
            "have 65537 bytes; the limit for a callback is 65536",
        ),
    ],
)
def test_what_is_beyond_is_refused(
    callback: Callback, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check_callback(callback, MIB)


def test_receipt_has_room_beside_the_attributes_of_its_owner() -> None:
    most = 2**64 - 1
    digest, name = b"\xff" * 16, "b" * BATCH_NAME_BYTES_MAX
    receipt = Receipt(name, most, most, most, 0, digest, digest, digest, complete=True)
    own = receipt_attributes("q" * QUEUE_NAME_CHARS_MAX, receipt)

    assert len(own) == 8
    assert attributes_bytes(own) <= OWN_BYTES
