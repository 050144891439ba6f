"""Errors of the server name arguments of the Python API."""

import pytest

from queueber.client.transport.server_errors import error_of
from queueber.errors import Internal, InvalidArgument, NotFound, QueueberError, ResourceExhausted


@pytest.mark.parametrize(
    ("wire_text", "error", "told"),
    [
        ("INVALID_ARGUMENT: numItems: 9 is too many", InvalidArgument, "count: 9 is too many"),
        ("INVALID_ARGUMENT: leaseValidity: 0 is no lease", InvalidArgument, "lease: 0 is no lease"),
        ("INVALID_ARGUMENT: visibilityTimeout: 9 ms", InvalidArgument, "delay: 9 ms"),
        ("INVALID_ARGUMENT: backoffBaseMs: 9", InvalidArgument, "backoff_base_ms: 9"),
        ("INVALID_ARGUMENT: producer.sequence: 0", InvalidArgument, "sequence: 0"),
        (
            "RESOURCE_EXHAUSTED: items: the call has 9",
            ResourceExhausted,
            "contents: the call has 9",
        ),
        ("NOT_FOUND: there is no queue 'itemBytesMax: 9'", NotFound, None),
        ("RESOURCE_EXHAUSTED: queue 'numItems' holds 9 items", ResourceExhausted, None),
        ("INTERNAL: KeyError: numItems", Internal, "KeyError: numItems"),
        ("no code at all: numItems", Internal, "no code at all: numItems"),
    ],
)
def test_the_first_word_becomes_the_argument(
    wire_text: str, error: type[QueueberError], told: str | None
) -> None:
    found = error_of(wire_text)

    assert type(found) is error
    assert str(found) == (told or wire_text.partition(": ")[2])
