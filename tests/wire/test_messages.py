"""Messages and what belongs to them survive the wire, in both directions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.blocks import pack_attributes
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import PUBLISH_MESSAGES_MAX, PUBLISH_TOPICS_MAX
from queueber.model import (
    Column,
    Delivery,
    IdRuns,
    MessageSlice,
    NewMessages,
    Outcome,
    PackedMessages,
    Producer,
    Publication,
    Published,
    Settlement,
    Subscribing,
)
from queueber.schema import wire
from queueber.wire.messages import (
    read_publication,
    read_publications,
    read_published,
    read_slice,
    write_publication,
    write_published,
    write_slice,
)
from queueber.wire.subscriptions import (
    read_settlement,
    read_subscribing,
    write_delivery,
    write_subscribing,
)
from tests.support.subscriber_codecs import read_delivery, write_settlement

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
ids = st.binary(min_size=16, max_size=16)


def packed(offset: int, at_ms: int, first_id: bytes, sequence: int, rows: Any) -> PackedMessages:
    ends, end = b"", 0
    for payload, _, _ in rows:
        end += len(payload)
        ends += end.to_bytes(4, "little")
    payloads = b"".join([row[0] for row in rows])
    keys = [row[1].encode() for row in rows]
    attributes = [pack_attributes(row[2]) for row in rows]
    return PackedMessages(
        offset, len(rows), at_ms, first_id, sequence, ends, payloads, keys, attributes
    )


rows = st.lists(
    st.tuples(st.binary(max_size=5), texts, st.dictionaries(texts, texts, max_size=2)),
    min_size=1,
    max_size=4,
)
pieces = st.builds(packed, u64, u64, ids, u64, rows)
slices = st.builds(
    MessageSlice, u32, st.lists(pieces, max_size=3), u64, u64, u64, u64, st.booleans()
)


def without_empty_columns(found: MessageSlice) -> MessageSlice:
    """A column that is empty in all messages is left out."""
    has_keys = any(any(piece.keys) for piece in found.packed)
    has_attributes = any(any(piece.attributes) for piece in found.packed)
    found.packed = [
        piece._replace(
            keys=list(piece.keys) if has_keys else (),
            attributes=list(piece.attributes) if has_attributes else (),
        )
        for piece in found.packed
    ]
    return found


def sent(kind: Any, write: Any, value: Any) -> Any:
    message = kind.new_message()
    write(message, value)
    with kind.from_bytes(message.to_bytes()) as received:
        yield received


@given(slices)
def test_slices(found: MessageSlice) -> None:
    for received in sent(wire.MessageSlice, write_slice, found):
        assert read_slice(received) == without_empty_columns(found)


@given(slices)
def test_columns_that_are_not_wanted_do_not_travel(found: MessageSlice) -> None:
    message = wire.MessageSlice.new_message()
    write_slice(message, found, frozenset({Column.CONTENTS, Column.KEYS, Column.ATTRIBUTES}))
    read = read_slice(message.as_reader())

    assert [(p.offset, p.count, p.id) for p in read.packed] == [
        (p.offset, p.count, p.id) for p in found.packed
    ]
    assert all(not p.payloads and not p.keys and not p.attributes for p in read.packed)
    assert [p.ends for p in read.packed] == [bytes(4 * p.count) for p in found.packed]


@given(slices, st.binary(max_size=16), st.lists(u32, max_size=3), u64)
def test_deliveries(found: MessageSlice, lease: bytes, attempts: list[int], missed: int) -> None:
    delivery = Delivery(found, lease, attempts, missed)
    for received in sent(wire.Delivery, write_delivery, delivery):
        read = read_delivery(received)
        assert read == Delivery(without_empty_columns(found), lease, attempts or (), missed)


messages = st.integers(0, 4).flatmap(
    lambda count: st.builds(
        NewMessages,
        st.lists(st.binary(max_size=5), min_size=count, max_size=count),
        st.just([]) | st.lists(texts, min_size=count, max_size=count),
        st.just([])
        | st.lists(st.dictionaries(texts, texts, max_size=2), min_size=count, max_size=count),
        st.just([]) | st.lists(texts, min_size=count, max_size=count),
    )
)
publications = st.builds(
    Publication,
    texts,
    messages,
    st.none() | st.integers(0, 2**31 - 1),
    st.none() | st.builds(Producer, texts.filter(bool), u64, u64),
    st.none() | st.integers(0, 2**63 - 1),
    st.booleans(),
    st.booleans(),
)


@given(publications)
def test_publications(publication: Publication) -> None:
    for received in sent(wire.Publication, write_publication, publication):
        read = read_publication(received)
        assert list(read.messages.payloads) == list(publication.messages.payloads)
        for name in ("keys", "attributes", "dedup_ids"):
            wanted = list(getattr(publication.messages, name))
            assert list(getattr(read.messages, name)) == wanted
        read.messages = publication.messages
        assert read == publication


published = st.integers(0, 4).flatmap(
    lambda count: st.builds(
        Published,
        u64,
        st.lists(st.integers(0, 255), min_size=count, max_size=count),
        st.lists(u64, min_size=count, max_size=count)
        | st.integers(0, 2**60).map(lambda n: range(n, n + count)),
        st.lists(ids, min_size=count, max_size=count),
        st.lists(u64, min_size=count, max_size=count),
        st.just([]) | st.lists(st.booleans(), min_size=count, max_size=count),
        st.booleans(),
    )
)


@given(published)
def test_what_was_published(answer: Published) -> None:
    for received in sent(wire.Published, write_published, answer):
        read = read_published(received)
        for name in ("partitions", "offsets", "ids", "sequences", "duplicates"):
            assert list(getattr(read, name)) == list(getattr(answer, name)), name
        assert (read.at_ms, read.is_repeat) == (answer.at_ms, answer.is_repeat)


def test_messages_that_follow_each_other_take_a_number_each_column() -> None:
    last = bytes(15) + b"\x09"
    answer = Published(1, [3] * 5, range(7, 12), IdRuns([(last, 5)]), range(20, 25))  # type: ignore[list-item]
    message = wire.Published.new_message()
    write_published(message, answer)

    assert (list(message.partitions), list(message.offsets)) == ([3], [7])
    assert (list(message.sequences), len(message.idRuns)) == ([20], 20)


def test_publications_have_limits_before_anything_is_read() -> None:
    message = wire.Publication.new_message()
    message.init("payloads", PUBLISH_MESSAGES_MAX + 1)
    with pytest.raises(ResourceExhausted, match="payloads: the call has 10001"):
        read_publication(message.as_reader())
    message = wire.Publication.new_message(partition=-2)
    with pytest.raises(InvalidArgument, match="partition: -2 is negative"):
        read_publication(message.as_reader())
    message = wire.Publication.new_message(expectedOffset=-2)
    with pytest.raises(InvalidArgument, match="expectedOffset: -2 is negative"):
        read_publication(message.as_reader())
    message = wire.Publication.new_message(payloads=[b"x"], packed={"values": b"x"})
    with pytest.raises(InvalidArgument, match="packed: payloads were given, too"):
        read_publication(message.as_reader())
    with pytest.raises(ResourceExhausted, match="publications: the call has 1001"):
        read_publications([message] * (PUBLISH_TOPICS_MAX + 1))


@given(
    st.builds(
        Subscribing,
        texts,
        texts,
        partitions=st.lists(st.integers(0, 255), max_size=3),
        credits=u32,
        heartbeat_ms=u64,
        lease_ms=u64,
        batch_messages_max=u32,
    )
)
def test_what_a_subscriber_asks_for(asked: Subscribing) -> None:
    for received in sent(wire.SubscribeRequest, write_subscribing, asked):
        assert read_subscribing(received) == asked


@given(
    st.builds(
        Settlement,
        st.binary(max_size=16),
        st.lists(st.integers(0, 255), max_size=3),
        st.lists(u64, max_size=3),
        st.sampled_from(Outcome),
        texts,
        st.none() | st.integers(0, 2**63 - 1),
    )
)
def test_settlements(settlement: Settlement) -> None:
    for received in sent(wire.SettleRequest, write_settlement, settlement):
        assert read_settlement(received) == settlement
