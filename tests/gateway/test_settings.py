"""The options of a gateway: limits, and where it may listen."""

from pathlib import Path

import pytest

from queueber.errors import InvalidArgument
from queueber.gateway.settings import NUMBERS, GatewaySettings
from queueber.tls import TlsOptions


def test_defaults_are_within_their_limits() -> None:
    settings = GatewaySettings()

    assert all(each.least <= getattr(settings, each.name) <= each.most for each in NUMBERS)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda each: each.name)
def test_a_number_outside_its_limits_is_refused(number: object) -> None:
    name, most = number.name, number.most  # type: ignore[attr-defined]

    with pytest.raises(InvalidArgument, match=rf"^{name.replace('_', '-')}: .* is outside"):
        GatewaySettings(**{name: most + 1})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"http": "nowhere"}, r"^http: address: 'nowhere' is not host:port"),
        ({"server": "nowhere"}, r"^server: address"),
        ({"http": "0.0.0.0:80"}, r"^http: other machines can reach 0.0.0.0:80, .* no TLS"),
        ({"allowed_origins": ("app.example",)}, r"^allowed-origins: 'app.example' is no origin"),
        ({"allowed_origins": ("https://app.example/",)}, r"^allowed-origins: "),
        ({"allowed_origins": ("https://*.example",)}, r"^allowed-origins: "),
        ({"allowed_origins": ("*", "")}, r"^allowed-origins: "),
        ({"tls_key": Path("key")}, r"^tls-key: it needs a certificate"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        GatewaySettings(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        ({}, False),
        ({"http": "0.0.0.0:80", "insecure": True}, False),
        ({"http": "0.0.0.0:80", "tls_certificate": Path("cert")}, True),
        ({"server_tls": TlsOptions(certificate="cert")}, True),
        ({"server_tls": TlsOptions(ca="ca")}, False),
    ],
)
def test_who_has_no_credential_is_refused_where_others_could_come(
    given: dict[str, object], needs: bool
) -> None:
    assert GatewaySettings(**given).needs_credential is needs  # type: ignore[arg-type]
