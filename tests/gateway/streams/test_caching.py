"""What caches are told."""

from queueber.gateway.settings import GatewaySettings
from queueber.gateway.streams import caching
from queueber.tls import TlsOptions


def test_a_cursor_is_always_greater_than_the_callers() -> None:
    now = caching.next_cursor(None)

    assert caching.next_cursor(now - 1) in (now, now + 1)
    for present in (now, now + 5, now + 100_000):
        assert present < caching.next_cursor(present) <= present + 180


def test_a_cursor_that_is_none_of_ours_is_as_good_as_none() -> None:
    texts = [None, "", "x", "-1", "1.5", "٣", "9" * 16, "42"]

    assert [caching.to_cursor(each) for each in texts] == [None] * 7 + [42]


def test_a_tag_changes_with_stream_range_and_end() -> None:
    tags = {
        caching.entity_tag(number, start, end, is_closed=closed, is_up_to_date=complete)
        for number in (1, 2)
        for start in (0, 3)
        for end in (5, 6)
        for closed, complete in ((False, False), (False, True), (True, True))
    }

    assert len(tags) == 24
    assert caching.entity_tag(1, 0, 5, is_closed=True, is_up_to_date=True) == b'"1-0-5-closed"'


def test_a_tag_is_known_if_it_is_one_of_those_that_the_caller_has() -> None:
    tag = caching.entity_tag(1, 0, 5, is_closed=False, is_up_to_date=True)

    for given in (tag, b"W/" + tag, b'"other", ' + tag, b"*"):
        assert caching.is_known({b"if-none-match": given}, tag)
    assert not caching.is_known({b"if-none-match": b'"other"'}, tag)
    assert not caching.is_known({}, tag)


def test_what_was_read_with_a_credential_is_kept_for_nobody_else() -> None:
    open_, certified = GatewaySettings(), GatewaySettings(server_tls=TlsOptions(certificate="c"))

    assert caching.for_good({}, open_) == b"public, max-age=31536000, immutable"
    assert caching.for_good({b"authorization": b"Bearer t"}, open_).startswith(b"private, ")
    assert caching.for_a_minute({}, certified).startswith(b"private, max-age=60, ")
