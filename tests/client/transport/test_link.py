"""A link: the server learns who has connected, and its errors name arguments of the API."""

import json
from types import SimpleNamespace

import pytest

import queueber
from queueber.client.transport.link import Link, TopicRef, error_of, program_name
from queueber.errors import Internal, InvalidArgument, NotFound, QueueberError, ResourceExhausted
from queueber.limits import QUEUES_MAX
from queueber.testing import running_server


def test_name_of_a_client_is_in_the_log_beside_what_it_did() -> None:
    with running_server() as server:
        with queueber.connect(server.address, name="nightly job") as client:
            client.create_queue("made")
        with queueber.connect(server.address) as client:
            client.delete_queue("made")
        events = [json.loads(line) for line in server.log_file.read_text().splitlines()]

    named = {each["event"]: each for each in events}
    assert named["queue_created"]["client"] == "nightly job"
    assert named["queue_deleted"]["client"] == program_name()


def test_name_that_is_too_long_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(queueber.InvalidArgument, match="name: it has 257 bytes; the limit is 256"):
        queueber.connect("127.0.0.1:1", name="x" * 257)


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


def test_capabilities_of_a_million_names_are_not_all_kept() -> None:
    class Service:
        def topic(self, name: str, must_exist: bool) -> SimpleNamespace:
            return SimpleNamespace(topic=f"capability of {name}")

    link = Link.__new__(Link)
    link._capabilities = {}
    link.service = Service()

    most = 0
    for number in range(5 * QUEUES_MAX):
        found = link.capability(TopicRef(f"t{number}", True))
        assert found == f"capability of t{number}"
        most = max(most, len(link._capabilities))

    assert most == QUEUES_MAX
