"""Subscribe: positions, credits, acknowledgements, takeover, and how streams end.

Four tests are about faults of the original server, and say so.
"""

import time

import grpc
import pytest

import queueber
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.sluice_pb2 import EARLIEST, LATEST, OFFSET
from tests.support.grpc import Sluice, Subscribed

INVALID = grpc.StatusCode.INVALID_ARGUMENT
OK = grpc.StatusCode.OK


def publish(sluice: Sluice, topic: str, count: int, first: int = 0) -> list[str]:
    """Messages `first`, ... and their ids."""
    done = sluice.batch(topic, *[b"%d" % each for each in range(first, first + count)])
    return [each.message_id for each in done.results]


def cursor(client: queueber.Client, topic: str, group: str = "default") -> int:
    return client.topic(topic).describe_group(group).cursors[0]


def wait_cursor(client: queueber.Client, topic: str, wanted: int, group: str = "default") -> None:
    give_up_at = time.monotonic() + 20
    while cursor(client, topic, group) != wanted:
        assert time.monotonic() < give_up_at, cursor(client, topic, group)
        time.sleep(0.01)


def wait_consumer(client: queueber.Client, topic: str, name: str) -> None:
    """Until a stream is subscribed: the protocol does not say so."""
    give_up_at = time.monotonic() + 20
    while True:
        assert time.monotonic() < give_up_at
        if any(name in each.consumers for each in client.topic(topic).groups()):
            return
        time.sleep(0.01)


# --- credits --------------------------------------------------------------------------------------


def test_nothing_comes_without_credits_which_add_up_and_0_is_none(
    sluice: Sluice, topic: str
) -> None:
    publish(sluice, topic, 6)
    stream = sluice.subscribe(topic)
    stream.credit(0)
    stream.credit(2)
    stream.credit(1)
    assert stream.payloads(3) == [b"0", b"1", b"2"]
    stream.credit(2)
    stream.done()  # what was granted comes, then the stream ends
    assert stream.payloads(2) == [b"3", b"4"]
    assert stream.status() == (OK, "")


def test_credits_may_be_more_than_the_server_takes_at_once(sluice: Sluice, topic: str) -> None:
    publish(sluice, topic, 3)
    stream = sluice.subscribe(topic)
    for _ in range(3):
        stream.credit(2**32 - 1)
    assert stream.payloads(3) == [b"0", b"1", b"2"]
    publish(sluice, topic, 1, first=3)
    (found,) = stream.take(1)
    assert (found.payload, found.message_id) == (b"3", found.message_id)
    stream.cancel()


def test_a_delivery_has_all_that_was_published(sluice: Sluice, topic: str) -> None:
    done = sluice.publish(topic, b"\0payload", traceparent="00-1")
    stream = sluice.subscribe(topic, "g")
    stream.credit(1)
    (found,) = stream.take(1)
    assert found == wire.MessageDelivery(
        message_id=done.message_id,
        sequence=done.sequence,
        payload=b"\0payload",
        attributes={"traceparent": "00-1"},
        timestamp=done.timestamp,
    )
    stream.cancel()


# --- positions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [LATEST, EARLIEST, OFFSET])
def test_an_unknown_topic_is_not_found_from_any_position(
    sluice: Sluice, client: queueber.Client, position: wire.InitialPosition
) -> None:
    stream = sluice.subscribe("nobody-has-this", initial_position=position, offset=1)
    assert stream.status()[0] is grpc.StatusCode.NOT_FOUND
    assert "nobody-has-this" not in list(client.topics())


def test_latest_begins_with_new_messages_until_the_group_has_acknowledged_one(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    publish(sluice, topic, 2)
    for number in (2, 3):  # without an acknowledgement the second begins at the end as well
        stream = sluice.subscribe(topic, consumer_id=f"c{number}", initial_position=LATEST)
        stream.credit(1)
        wait_consumer(client, topic, f"c{number}")
        publish(sluice, topic, 1, first=number)
        (found,) = stream.take(1)
        assert found.payload == b"%d" % number
        if number == 2:
            stream.cancel()
    stream.ack(found.message_id)
    wait_cursor(client, topic, 4)
    stream.cancel()
    publish(sluice, topic, 1, first=4)

    again = sluice.subscribe(topic, initial_position=LATEST)
    again.credit(1)
    assert again.payloads(1) == [b"4"]
    again.cancel()


def test_latest_begins_with_new_messages_also_where_others_were_deleted(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    publish(sluice, topic, 4)
    client.topic(topic).trim(start=2)
    for number in (4, 5):
        stream = sluice.subscribe(topic, consumer_id=f"c{number}", initial_position=LATEST)
        stream.credit(1)
        wait_consumer(client, topic, f"c{number}")
        publish(sluice, topic, 1, first=number)
        (found,) = stream.take(1)
        assert found.payload == b"%d" % number
        if number == 4:
            stream.cancel()
    stream.ack(found.message_id)
    wait_cursor(client, topic, 6)
    client.topic(topic).trim(start=6)  # what it has acknowledged is gone, and it goes on there
    stream.cancel()
    publish(sluice, topic, 1, first=6)
    again = sluice.subscribe(topic, initial_position=LATEST)
    again.credit(1)
    assert again.payloads(1) == [b"6"]
    again.cancel()


def test_earliest_begins_at_the_first_message_and_later_where_the_group_is(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    ids = publish(sluice, topic, 4)
    for _ in range(2):
        stream = sluice.subscribe(topic, "g")
        stream.credit(2)
        assert stream.payloads(2) == [b"0", b"1"]
    stream.ack(ids[0])
    wait_cursor(client, topic, 1, "g")
    stream.cancel()

    again = sluice.subscribe(topic, "g")
    again.credit(1)
    assert again.payloads(1) == [b"1"]
    again.cancel()


def test_offset_begins_after_a_sequence_and_moves_the_cursor_with_an_ack_alone(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    done = sluice.batch(topic, b"0", b"1", b"2", b"3")
    stream = sluice.subscribe(
        topic, initial_position=OFFSET, offset=done.results[1].sequence, consumer_id="c"
    )
    stream.credit(2)
    found = stream.take(2)
    assert [each.payload for each in found] == [b"2", b"3"]
    assert cursor(client, topic) == 0
    stream.ack(found[0].message_id)
    wait_cursor(client, topic, 3)
    stream.cancel()


def test_offset_may_be_in_the_future_and_must_be_in_bounds(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    last = sluice.batch(topic, b"0").results[0].sequence
    stream = sluice.subscribe(topic, initial_position=OFFSET, offset=last + 2, consumer_id="c")
    stream.credit(1)
    wait_consumer(client, topic, "c")
    sluice.batch(topic, b"1", b"2", b"3")
    (found,) = stream.take(1)
    assert (found.payload, found.sequence) == (b"3", last + 3)
    stream.cancel()

    for wrong in (0, 2**63 - 1, 2**64 - 1):
        assert sluice.subscribe(topic, initial_position=OFFSET, offset=wrong).status() == (
            INVALID,
            f"offset: it is {wrong}; OFFSET begins after a sequence from 1 to 9223372036854775806",
        )
    highest = sluice.subscribe(topic, initial_position=OFFSET, offset=2**63 - 2)
    highest.done()
    assert highest.status() == (OK, "")


def test_a_topic_of_several_partitions_has_no_order_to_subscribe_to(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    client.create_topic(topic, partitions=2)
    sluice.publish(topic)
    status, text = sluice.subscribe(topic).status()
    assert status is grpc.StatusCode.FAILED_PRECONDITION
    assert text.startswith(f"topic: '{topic}' has 2 partitions")


# --- acknowledgements -----------------------------------------------------------------------------


def test_an_ack_does_not_set_delivery_back(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    """The original delivers the 3rd and 4th again: an ack of the 2nd sets its position there."""
    publish(sluice, topic, 7)
    stream = sluice.subscribe(topic)
    stream.credit(4)
    found = stream.take(4)
    stream.ack(found[1].message_id)
    wait_cursor(client, topic, 2)
    stream.credit(3)
    assert stream.payloads(3) == [b"4", b"5", b"6"]
    stream.cancel()


def test_an_ack_is_cumulative_and_never_goes_back(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    ids = publish(sluice, topic, 5)
    stream = sluice.subscribe(topic)
    stream.credit(4)
    stream.take(4)
    stream.ack(ids[2])
    wait_cursor(client, topic, 3)
    for each in (ids[0], ids[2], "no uuid", "", "0" * 32, ids[3]):  # the first five do nothing
        stream.ack(each)
    wait_cursor(client, topic, 4)
    stream.cancel()


def test_an_ack_of_another_topics_message_skips_nothing(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    """The original moves the cursor to the sequence of the other topic's message."""
    ids = publish(sluice, topic, 2)
    foreign = sluice.publish(topic + "-other").message_id
    later = publish(sluice, topic, 2, first=2)
    stream = sluice.subscribe(topic)
    stream.credit(1)
    stream.take(1)
    stream.ack(foreign)
    stream.ack(ids[0])
    wait_cursor(client, topic, 1)
    stream.cancel()

    again = sluice.subscribe(topic)
    again.credit(3)
    assert [each.message_id for each in again.take(3)] == [ids[1], *later]
    again.cancel()


def test_an_ack_of_what_an_earlier_stream_got_goes_on_behind_it(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    ids = publish(sluice, topic, 4)
    first = sluice.subscribe(topic)
    first.credit(3)
    first.take(3)
    first.cancel()

    again = sluice.subscribe(topic)
    again.ack(ids[2])
    wait_cursor(client, topic, 3)
    again.credit(1)
    assert again.payloads(1) == [b"3"]
    again.ack(ids[3])
    wait_cursor(client, topic, 4)
    again.cancel()


def test_a_group_that_is_reset_is_delivered_from_there_and_acknowledges_again(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    ids = publish(sluice, topic, 3)
    stream = sluice.subscribe(topic)
    stream.credit(3)
    stream.take(3)
    stream.ack(ids[2])
    wait_cursor(client, topic, 3)

    client.topic(topic).reset("default", start=1)
    stream.credit(2)
    assert stream.payloads(2) == [b"1", b"2"]
    stream.ack(ids[1])
    wait_cursor(client, topic, 2)
    stream.cancel()


# --- takeover -------------------------------------------------------------------------------------


def test_a_takeover_aborts_the_old_stream_alone(
    sluice: Sluice, client: queueber.Client, address: str, topic: str
) -> None:
    """In the original the cleanup of the old stream aborts the new one, too."""
    ids = publish(sluice, topic, 3)
    first = sluice.subscribe(topic, consumer_id="first")
    first.credit(100)
    first.take(3)
    first.ack(ids[0])
    wait_cursor(client, topic, 1)
    with Sluice(address) as other:
        second = other.subscribe(topic, consumer_id="second")

        status, text = first.status()
        assert (status, text) == (
            grpc.StatusCode.ABORTED,
            "consumer 'second' has taken over partition 0 of group 'default'",
        )
        publish(sluice, topic, 1, first=3)
        second.credit(2)  # it has none of the first one's
        assert second.payloads(2) == [b"1", b"2"]
        second.credit(1)
        (last,) = second.take(1)
        assert last.payload == b"3"
        second.ack(last.message_id)
        wait_cursor(client, topic, 4)
        second.cancel()


def test_a_consumer_of_queueber_and_one_of_sluice_take_over_from_each_other(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    publish(sluice, topic, 2)
    with client.topic(topic).subscribe(group="g") as own:
        assert own.next(5) is not None
        stream = sluice.subscribe(topic, "g")
        stream.credit(1)
        assert stream.payloads(1) == [b"0"]
        with pytest.raises(queueber.Aborted):
            list(own)
    with client.topic(topic).subscribe(group="g") as own:
        assert stream.status()[0] is grpc.StatusCode.ABORTED


def test_groups_do_not_affect_each_other(sluice: Sluice, topic: str) -> None:
    publish(sluice, topic, 1)
    streams = [sluice.subscribe(topic, group) for group in ("a", "b", "")]
    for stream in streams:
        stream.credit(1)
    assert [stream.payloads(1) for stream in streams] == [[b"0"]] * 3
    for stream in streams:
        stream.cancel()


# --- how streams end ------------------------------------------------------------------------------


def test_the_first_message_must_be_init(sluice: Sluice) -> None:
    stream = Subscribed(sluice.channel)
    stream.credit(1)
    assert stream.status() == (INVALID, "init: the first message of a stream must be one")
    silent = Subscribed(sluice.channel)
    silent.done()
    assert silent.status()[0] is INVALID


def test_a_second_init_is_refused(sluice: Sluice, topic: str) -> None:
    """The original ends the stream with OK."""
    publish(sluice, topic, 1)
    stream = sluice.subscribe(topic)
    stream.init(topic)
    assert stream.status() == (
        INVALID, "init: the stream has one already; open another stream",
    )  # fmt: skip


def test_what_is_nothing_of_the_protocol_is_refused(sluice: Sluice, topic: str) -> None:
    publish(sluice, topic, 1)
    stream = sluice.subscribe(topic)
    stream.say()
    assert stream.status() == (INVALID, "request: it is neither init, credit nor ack")
    assert sluice.subscribe(topic, initial_position=7).status()[0] is INVALID
    assert sluice.subscribe(topic, "g" * 256).status()[0] is INVALID
    assert sluice.subscribe(topic, consumer_id="a\nb").status()[0] is INVALID


def test_a_group_of_another_kind_is_refused(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    client.create_topic(topic)
    client.topic(topic).create_group("shared", kind="shared")
    for position in (EARLIEST, LATEST):
        stream = sluice.subscribe(topic, "shared", initial_position=position)
        stream.credit(1)
        sluice.publish(topic)
        assert stream.status()[0] in (grpc.StatusCode.FAILED_PRECONDITION, INVALID)


def test_a_closed_topic_ends_with_ok_once_its_consumer_has_acknowledged_all(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    publish(sluice, topic, 2)
    client.topic(topic).close()
    stream = sluice.subscribe(topic)
    stream.credit(9)
    found = stream.take(2)
    stream.ack(found[1].message_id)
    assert stream.status() == (OK, "")
    assert cursor(client, topic) == 2


def test_a_deleted_topic_ends_its_streams(
    sluice: Sluice, client: queueber.Client, topic: str
) -> None:
    publish(sluice, topic, 1)
    stream = sluice.subscribe(topic)
    stream.credit(9)
    stream.take(1)
    client.delete_topic(topic)
    assert stream.status()[0] is grpc.StatusCode.NOT_FOUND
