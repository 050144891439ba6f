"""Headers of requests: what is wrong with one is said, whichever it is."""

import pytest

from queueber.gateway.problems import Problem
from queueber.gateway.streams import headers
from queueber.gateway.streams.headers import Expiry, ForkHeaders, ProducerHeaders
from queueber.gateway.streams.paths import checked, source_path
from queueber.gateway.streams.tokens import Place
from queueber.model import Position, Start

ZERO = b"0000000000000000_0000000000000000"


def refused(function: object, **given: bytes) -> str:
    named = {name.replace("_", "-").encode(): value for name, value in given.items()}
    with pytest.raises(Problem) as caught:
        function(named)  # type: ignore[operator]
    assert (caught.value.status, caught.value.code) == (400, "INVALID_ARGUMENT")
    return caught.value.detail.partition(":")[0]


@pytest.mark.parametrize("text", [b"-1", b"+1", b"01", b"1.5", b"1e3", b"", b" 1", b"x"])
def test_a_ttl_is_a_whole_number(text: bytes) -> None:
    assert refused(headers.expiry_of, stream_ttl=text) == "stream-ttl"


@pytest.mark.parametrize(
    "text", [b"tomorrow", b"2030-01-01", b"2030-13-01T00:00:00Z", b"2030-01-01T00:00:00", b""]
)
def test_an_expiry_is_a_time_with_a_zone(text: bytes) -> None:
    assert refused(headers.expiry_of, stream_expires_at=text) == "stream-expires-at"


def test_an_expiry_is_one_of_two() -> None:
    at = b"2030-01-01T01:00:00.5+01:00"

    assert headers.expiry_of({}) == Expiry()
    assert headers.expiry_of({b"stream-ttl": b"60"}) == Expiry(ttl_seconds=60)
    assert headers.expiry_of({b"stream-expires-at": at}) == Expiry(at_ms=1893456000500)
    both = refused(headers.expiry_of, stream_ttl=b"60", stream_expires_at=at)
    assert both == "stream-expires-at"


def test_a_producer_has_three_headers() -> None:
    whole = {b"producer-id": b"p", b"producer-epoch": b"3", b"producer-seq": b"007"}

    assert headers.producer_of({}) is None
    assert headers.producer_of(whole) == ProducerHeaders("p", 3, 7)
    for name in whole:
        less = {each: value for each, value in whole.items() if each != name}
        with pytest.raises(Problem, match="give it with Producer-Epoch"):
            headers.producer_of(less)


@pytest.mark.parametrize("number", [b"-1", b"1.0", b"x", b"", b"9007199254740992", b"1" * 40])
def test_numbers_of_producers_are_bounded(number: bytes) -> None:
    for name in ("producer_epoch", "producer_seq"):
        given = {"producer_id": b"p", "producer_epoch": b"1", "producer_seq": b"1", name: number}
        assert refused(headers.producer_of, **given) == name.replace("_", "-")
    assert refused(headers.producer_of, producer_id=b"", producer_epoch=b"1", producer_seq=b"1")


def test_only_true_closes() -> None:
    texts = [b"true", b"TRUE", b" True ", b"1", b"yes", b"", b"false"]

    assert [headers.closes({b"stream-closed": text}) for text in texts] == [True] * 3 + [False] * 4
    assert not headers.closes({})


def test_a_fork_names_its_source_by_address_or_path() -> None:
    place = Place(Position(Start.OFFSET, 0))
    given = {b"stream-forked-from": b"/v1/stream/a/b", b"stream-fork-offset": ZERO}

    assert headers.fork_of({}) is None
    assert headers.fork_of({b"stream-forked-from": b"a/b"}) == ForkHeaders("a/b", None, 0)
    assert headers.fork_of(given) == ForkHeaders("a/b", place, 0)
    more = {**given, b"stream-fork-sub-offset": b"3"}
    assert headers.fork_of(more) == ForkHeaders("a/b", place, 3)


@pytest.mark.parametrize("text", [b"-1", b"abc", b"1.5", b"05", b"+1", b""])
def test_a_sub_offset_is_a_whole_number(text: bytes) -> None:
    given = {"stream_forked_from": b"a", "stream_fork_offset": ZERO}
    name = refused(headers.fork_of, **given, stream_fork_sub_offset=text)
    assert name == "stream-fork-sub-offset"


def test_a_place_of_a_fork_needs_a_source_and_a_sub_offset_needs_a_place() -> None:
    refused(headers.fork_of, stream_fork_offset=ZERO)
    refused(headers.fork_of, stream_fork_sub_offset=b"0")
    refused(headers.fork_of, stream_forked_from=b"a", stream_fork_sub_offset=b"1")
    zero = {b"stream-forked-from": b"a", b"stream-fork-sub-offset": b"0"}
    assert headers.fork_of(zero) == ForkHeaders("a", None, 0)


def test_a_condition_is_an_offset_with_or_without_quotes() -> None:
    place = Place(Position(Start.OFFSET, 0))

    assert headers.wanted_offset({}) is None
    assert headers.wanted_offset({b"if-match": b"*"}) is None
    assert headers.wanted_offset({b"if-match": b'"' + ZERO + b'"'}) == place
    assert headers.wanted_offset({b"if-match": ZERO}) == place
    assert refused(headers.wanted_offset, if_match=b'"x"') == "if-match"


@pytest.mark.parametrize(
    ("path", "status"),
    [("", 400), ("a b", 400), ("ä", 400), ("a" * 256, 400), ("queue/a/results", 400),
     ("__ds/keys", 404), ("__ds", 404), ("a\n", 400)],
)  # fmt: skip
def test_paths_that_no_stream_has(path: str, status: int) -> None:
    with pytest.raises(Problem) as caught:
        checked(path, "path")

    assert caught.value.status == status


def test_paths_that_a_stream_may_have() -> None:
    for path in ("a", "a/b/c", "A.b-c_d", "a" * 255, "queue", "__dsx/y"):
        assert checked(path, "path") == path
    assert source_path("/v1/stream/a%2Fb") == "a/b"
