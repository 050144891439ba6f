"""The rules of wakes and their tokens, without a clock and without a server."""

import pytest
from msgspec.structs import replace

from queueber.gateway.streams.subscriptions import wakes
from queueber.gateway.streams.subscriptions.records.positions import NOWHERE, Position, Tail
from queueber.gateway.streams.subscriptions.records.record import (
    LINKS_MAX,
    Kind,
    Link,
    Record,
    decode,
    encode,
)
from queueber.gateway.streams.subscriptions.refusals import Refusal
from queueber.gateway.streams.subscriptions.wake_tokens import (
    TOKEN_MS_MAX,
    make_token,
    to_wake_token,
)

NOW = 1_000_000


def record(kind: Kind = "webhook", /, **links: Link) -> Record:
    return Record(
        id="s", type=kind, lease_ttl_ms=1000, created_at_ms=1, config_hash="", base_url="",
        links=dict(links),
    )  # fmt: skip


def tail(origin: int, offset: int, start: int = 0) -> Tail:
    return Tail(Position(origin, offset), Position(origin, start))


def test_a_record_is_read_as_it_was_written() -> None:
    begun = wakes.begin(record(a=Link(Position(1, 2), is_glob=True)), {"a": tail(1, 3)}, NOW)

    assert decode(encode(begun)) == begun


def test_links_follow_their_streams() -> None:
    glob, named = Link(Position(1, 2), is_glob=True), Link(Position(1, 2), is_explicit=True)
    before = record(same=glob, gone=glob, gone_named=named, again=glob, forked=named, unasked=glob)
    tails = {
        "same": tail(1, 5), "gone": None, "gone_named": None, "again": tail(2, 1),
        "forked": tail(3, 9, 7),
    }  # fmt: skip

    after = wakes.follow(before, tails)

    assert after.links == {
        "same": glob,
        "gone_named": replace(named, acked=NOWHERE),
        "again": replace(glob, acked=Position(2, 0)),
        "forked": replace(named, acked=Position(3, 7)),
        "unasked": glob,
    }


def test_a_full_subscription_takes_no_further_link() -> None:
    links = {f"s{number}": Link(NOWHERE) for number in range(LINKS_MAX)}
    full = replace(record(), links=links)

    assert wakes.link(full, "more", NOWHERE, explicit=False) == full
    assert wakes.link(full, "s1", NOWHERE, explicit=True).links["s1"].is_explicit


def test_a_webhook_that_failed_is_not_over_before_its_next_attempt() -> None:
    wake = wakes.begin(record(), {}, NOW).wake
    assert wake is not None
    later = replace(wake, attempt_at_ms=NOW + 60_000)

    assert not wakes.is_over(wake, NOW + 999)
    assert wakes.is_over(wake, NOW + 1000)
    assert not wakes.is_over(later, NOW + 59_999)
    assert wakes.is_over(later, NOW + 60_000)


def test_a_wake_that_nobody_has_claimed_is_not_over() -> None:
    begun = wakes.begin(record("pull-wake"), {}, NOW)
    assert begun.wake is not None

    assert not wakes.is_over(begun.wake, NOW + 10**9)
    claimed = wakes.claim(begun, "w", {}, NOW)
    assert (claimed.generation, claimed.wake.id) == (1, begun.wake.id)  # type: ignore[union-attr]
    again = wakes.claim(claimed, "x", {}, NOW + 1000)
    assert (again.generation, again.wake.holder) == (2, "x")  # type: ignore[union-attr]


def test_an_acknowledgement_never_goes_back_or_to_another_stream() -> None:
    before = record(a=Link(Position(1, 5)), b=Link(Position(1, 5)))

    after = wakes.acknowledge(
        before, {"a": Position(1, 4), "b": Position(2, 9), "c": Position(1, 1)}
    )

    assert after == before


def test_a_token_ends_after_a_day() -> None:
    begun = wakes.begin(record(), {}, NOW)
    token = make_token(b"key", begun)

    assert to_wake_token(b"key", "s", token, now_ms=NOW + TOKEN_MS_MAX) == (1, NOW)
    for key, id, now_ms, code in [
        (b"key", "s", NOW + TOKEN_MS_MAX + 1, "TOKEN_EXPIRED"),
        (b"other", "s", NOW, "TOKEN_INVALID"),
        (b"key", "t", NOW, "TOKEN_INVALID"),
    ]:
        with pytest.raises(Refusal) as refused:
            to_wake_token(key, id, token, now_ms=now_ms)
        assert refused.value.code == code
