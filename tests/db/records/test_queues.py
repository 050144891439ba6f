"""Queues: every setting is read as it was written."""

from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.queues import decode_queue, encode_queue
from queueber.model import QueueSettings
from queueber.schema import storage

numbers = st.integers(0, (1 << 64) - 1)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
floats = st.floats(0, 1000)
settings_of_any_kind = st.builds(
    QueueSettings,
    items_max=numbers,
    bytes_max=numbers,
    item_bytes_max=numbers,
    lease_ms=numbers,
    attempts_max=st.integers(0, (1 << 32) - 1),
    backoff_ms=st.lists(numbers, max_size=5).map(tuple),
    backoff_base_ms=numbers,
    backoff_factor=floats,
    backoff_cap_ms=numbers,
    backoff_jitter=floats,
    dedup_window_ms=numbers,
    result_age_ms=numbers,
    result_bytes_max=numbers,
)


@given(name=texts, created_at_ms=numbers, settings=settings_of_any_kind, paused_until_ms=numbers)
def test_queue_round_trips(
    name: str, created_at_ms: int, settings: QueueSettings, paused_until_ms: int
) -> None:
    encoded = encode_queue(name, created_at_ms, settings, paused_until_ms)

    assert decode_queue(encoded) == (name, created_at_ms, settings, paused_until_ms)


def test_queue_with_nothing_set_has_no_name_and_zero_everywhere() -> None:
    encoded = storage.QueueRecord.new_message().to_bytes()

    nothing = QueueSettings(
        lease_ms=0,
        attempts_max=0,
        backoff_base_ms=0,
        backoff_factor=0.0,
        backoff_cap_ms=0,
        backoff_jitter=0.0,
        dedup_window_ms=0,
        result_age_ms=0,
    )
    assert decode_queue(encoded) == ("", 0, nothing, 0)
