"""The records of topics and groups, and the keys of the agenda."""

from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.topics import (
    AGENDA_END,
    GroupRecord,
    Inherited,
    TopicRecord,
    agenda_key,
    agenda_time_key,
    decode_group,
    decode_topic,
    encode_group,
    encode_topic,
    group_key,
    position_key,
    split_agenda_time_key,
    split_group_key,
)
from queueber.model import GroupKind, GroupSettings, QueueSettings, TopicSettings

numbers = st.integers(0, (1 << 32) - 1)
offsets = st.integers(0, (1 << 64) - 1)
inherited = st.builds(Inherited, st.integers(0, 255), numbers, offsets, offsets)


@given(
    name=st.text(min_size=1, max_size=20),
    logs=st.lists(numbers, max_size=4),
    stretches=st.lists(inherited, max_size=3),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_a_topic_is_read_as_it_was_written(
    name: str, logs: list[int], stretches: list[Inherited], flags: tuple[bool, bool]
) -> None:
    record = TopicRecord(
        name,
        17,
        tuple(logs),
        TopicSettings(1, 2, 3, True, True, True, 4, 5, 6, 7, 8),
        "alias",
        "text/plain",
        *flags,
        used_at_ms=8,
        forks=9,
        parent=10,
        inherited=tuple(stretches),
        origin=11,
        fork_offset=12,
        cut_bytes=13,
        text_sequence="é",
    )

    assert decode_topic(encode_topic(record)) == record


@given(kind=st.sampled_from(GroupKind), number=numbers, in_flight=offsets)
def test_a_group_is_read_as_it_was_written(kind: GroupKind, number: int, in_flight: int) -> None:
    leases = QueueSettings(lease_ms=5, attempts_max=2, backoff_ms=(1, 2), isolation=False)
    record = GroupRecord(number, 17, GroupSettings(kind, "queue", leases, in_flight), 18, (0, 7))

    assert decode_group(encode_group(record)) == record


def test_keys_of_groups_and_positions_begin_with_their_numbers() -> None:
    assert group_key(b"\0\0\0\7", "größe") == b"\0\0\0\7" + "größe".encode()
    assert split_group_key(group_key(b"\0\0\0\7", "größe")) == "größe"
    assert position_key(b"\0\0\0\7", 258) == b"\0\0\0\7\1\2"


@given(times=st.lists(st.tuples(offsets, numbers), min_size=2))
def test_the_agenda_sorts_by_time_and_keeps_numbers_apart(times: list[tuple[int, int]]) -> None:
    keys = [agenda_time_key(*each) for each in times]

    assert [split_agenda_time_key(key) for key in sorted(keys)] == sorted(times)
    assert all(agenda_key(number) < min(keys) for _, number in times)
    assert max(keys) < AGENDA_END
