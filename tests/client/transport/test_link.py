"""A link: the server learns who has connected."""

import json

import pytest

import queueber
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
    assert "client" not in named["queue_deleted"]


def test_name_that_is_too_long_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(queueber.InvalidArgument, match="name: it has 257 bytes; the limit is 256"):
        queueber.connect("127.0.0.1:1", name="x" * 257)
