"""A browser that shows another site's page cannot be made to use a gateway on loopback."""

import pytest

from queueber.errors import Unauthenticated
from queueber.gateway.origins import caller_of, check_origin, page_headers
from queueber.gateway.problems import Problem
from queueber.gateway.settings import GatewaySettings
from queueber.model import Credential

LOOPBACK = GatewaySettings()


def test_programs_and_the_gateways_own_pages_are_let_in() -> None:
    check_origin({b"host": b"127.0.0.1:9091"})
    check_origin({b"host": b"127.0.0.1:9091", b"origin": b"http://127.0.0.1:9091"})
    check_origin({b"host": b"queues.example", b"origin": b"https://Queues.example"})


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        (b"127.0.0.1:9091", b"http://evil.example"),
        (b"127.0.0.1:9091", b"http://127.0.0.1:8000"),
        (b"127.0.0.1:9091", b"null"),
        (b"", b"null"),
    ],
)
def test_pages_of_other_sites_are_refused(host: bytes, origin: bytes) -> None:
    with pytest.raises(Problem) as caught:
        check_origin({b"host": host, b"origin": origin})
    assert (caught.value.status, caught.value.code) == (403, "PERMISSION_DENIED")


def test_pages_of_named_origins_are_let_in_and_told_so() -> None:
    app, allowed = {b"host": b"a", b"origin": b"https://App.example"}, ("https://app.example",)

    check_origin(app, allowed)
    check_origin(app, ("*",))

    assert dict(page_headers(app, allowed))[b"access-control-allow-origin"] == app[b"origin"]
    assert dict(page_headers(app, ("*",)))[b"access-control-allow-origin"] == b"*"
    assert page_headers(app, ()) == [(b"cross-origin-resource-policy", b"same-origin")]
    for origin in (b"https://app.example.evil", b"http://app.example", b"null", b"*", b""):
        with pytest.raises(Problem):
            check_origin({b"host": b"a", b"origin": origin}, allowed)


@pytest.mark.parametrize(
    "host",
    [b"", b"127.0.0.1", b"127.0.0.1:9091", b"[::1]:9091", b"10.1.2.3:80", b"LOCALHOST:9091",
     b"queues.localhost"],
)  # fmt: skip
def test_whoever_asks_for_an_address_needs_no_credential_on_loopback(host: bytes) -> None:
    assert caller_of({b"host": host}, LOOPBACK) is None


@pytest.mark.parametrize("host", [b"evil.example:9091", b"127.0.0.1.evil.example", b"localhost.x"])
def test_a_name_that_points_to_loopback_needs_a_credential(host: bytes) -> None:
    """The name may be that of a page, whose owner has let it point here since."""
    with pytest.raises(Unauthenticated, match="any site may let a name point here"):
        caller_of({b"host": host, b"origin": b"http://" + host}, LOOPBACK)
    named = {b"host": host, b"authorization": b"Bearer t"}
    assert caller_of(named, LOOPBACK) == Credential(token="t")
    assert caller_of({b"host": host}, GatewaySettings(insecure=True)) is None
