"""Contexts of TLS, and names in certificates."""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from queueber.errors import InvalidArgument
from queueber.tls import (
    ServerTls,
    TlsOptions,
    certificate_name,
    client_context,
    server_context,
    to_tls,
)
from tests.support.certificates import HOSTS, Authority, new_authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return new_authority(tmp_path)


def handshake(
    server: ssl.SSLContext, client: ssl.SSLContext, name: str = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends, after a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(5):
        for end in (theirs, ours):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ours, theirs


def test_both_sides_agree_on_tls_1_3(authority: Authority) -> None:
    server = server_context(authority.issue("server", *HOSTS))

    ours, theirs = handshake(server, client_context(authority.trusted()))

    assert (ours.version(), theirs.version()) == ("TLSv1.3", "TLSv1.3")


def test_tls_1_2_has_forward_secrecy_and_older_versions_are_refused(authority: Authority) -> None:
    server = server_context(authority.issue("server", *HOSTS))
    client = client_context(authority.trusted())
    client.maximum_version = ssl.TLSVersion.TLSv1_2

    ours, _ = handshake(server, client)

    cipher = ours.cipher()
    assert cipher is not None
    assert (ours.version(), cipher[0].startswith("ECDHE-")) == ("TLSv1.2", True)
    assert server.minimum_version == client.minimum_version == ssl.TLSVersion.TLSv1_2
    old = [each["name"] for each in server.get_ciphers() if each["protocol"] != "TLSv1.3"]
    assert all(name.startswith("ECDHE-") and "CBC" not in name for name in old)


def test_certificate_of_a_client_names_it(authority: Authority) -> None:
    client_file = authority.issue("client", "ocr.example", common_name="ocr-worker")
    server = server_context(authority.issue("server", *HOSTS), client_ca=authority.ca_file)
    client = client_context(TlsOptions(ca=authority.ca_file, certificate=client_file))

    ours, _ = handshake(server, client)

    assert certificate_name(ours.getpeercert()) == "ocr-worker"


def test_client_without_certificate_is_refused_only_if_it_needs_one(authority: Authority) -> None:
    client = client_context(authority.trusted())
    certificate = authority.issue("server", *HOSTS)

    optional = server_context(
        certificate, client_ca=authority.ca_file, needs_client_certificate=False
    )
    ours, _ = handshake(optional, client)
    assert certificate_name(ours.getpeercert()) == ""

    needed = server_context(certificate, client_ca=authority.ca_file)
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        handshake(needed, client)


@pytest.mark.parametrize(
    ("certificate", "name"),
    [
        (None, ""),
        ({}, ""),
        ({"subject": ((("commonName", "a"),),)}, "a"),
        ({"subject": ((("organizationName", "o"),), (("commonName", "a"),))}, "a"),
        ({"subject": ((("commonName", "a"),), (("commonName", "b"),))}, "b"),
        ({"subject": (), "subjectAltName": (("DNS", "d.example"), ("URI", "spiffe://x"))},
         "d.example"),
        ({"subjectAltName": (("email", "a@b"), ("URI", "spiffe://x/y"))}, "spiffe://x/y"),
        ({"subjectAltName": (("IP Address", "10.0.0.1"),)}, ""),
    ],
)  # fmt: skip
def test_name_is_the_common_name_or_the_first_alternative_one(
    certificate: dict[str, Any] | None, name: str
) -> None:
    assert certificate_name(certificate) == name


# --- what is wrong is said ------------------------------------------------------------------------


def test_file_that_cannot_be_read_is_named(authority: Authority) -> None:
    missing, good = authority.folder / "none.pem", authority.issue("server", *HOSTS)

    def refusal(make: Callable[..., object], *arguments: object) -> str:
        with pytest.raises(InvalidArgument) as refused:
            make(*arguments)
        return str(refused.value)

    found = [
        refusal(server_context, missing),
        refusal(server_context, good, missing),
        refusal(server_context, good, None, missing),
        refusal(client_context, TlsOptions(ca=missing)),
        refusal(client_context, TlsOptions(certificate=missing)),
        refusal(client_context, TlsOptions(certificate=good, key=missing)),
    ]

    names = "tls-certificate", "tls-key", "tls-client-ca", "tls.ca", "tls.certificate", "tls.key"
    reason = f"cannot read {missing}: No such file or directory"
    assert found == [f"{name}: {reason}" for name in names]


def test_file_without_what_it_should_have_is_named(authority: Authority) -> None:
    garbage = authority.folder / "garbage.pem"
    garbage.write_text("not a certificate")

    with pytest.raises(InvalidArgument, match=r"tls-certificate: .*garbage.pem are not a certific"):
        server_context(garbage)
    with pytest.raises(InvalidArgument, match=r"tls.ca: .*garbage.pem has no certificates in PEM"):
        client_context(TlsOptions(ca=garbage))


def test_key_of_another_certificate_is_refused(authority: Authority) -> None:
    one, two = authority.issue("one", *HOSTS), authority.issue("two", *HOSTS)

    with pytest.raises(InvalidArgument, match=r"tls-key: .*two.pem is not the key of the certific"):
        server_context(one, two)


def test_encrypted_key_is_refused_and_nobody_is_asked_for_a_password(authority: Authority) -> None:
    issued = authority.ca.issue_cert(*HOSTS)
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    encrypted = authority.folder / "encrypted.pem"
    encrypted.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"x"),
        )
    )
    certificate = authority.folder / "plain.pem"
    issued.cert_chain_pems[0].write_to_path(str(certificate))

    with pytest.raises(InvalidArgument, match="tls-key: the key is encrypted; store it without"):
        server_context(certificate, encrypted)


@pytest.mark.parametrize("given", [1, "ca.pem", object()])
def test_argument_of_a_client_is_true_or_options(given: object) -> None:
    assert to_tls(None) is to_tls(False) is None
    assert to_tls(True) == TlsOptions()
    assert to_tls(TlsOptions(ca="x")) == TlsOptions(ca="x")
    with pytest.raises(InvalidArgument, match=r"^tls: .* is not True or TlsOptions"):
        to_tls(given)


def test_options_of_a_client_are_checked() -> None:
    with pytest.raises(InvalidArgument, match=r"tls\.key: there is no certificate for it"):
        TlsOptions(key="key.pem")
    with pytest.raises(InvalidArgument, match=r"tls\.ca: 3 is not the path of a file"):
        TlsOptions(ca=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"tls\.server_name: 3 is not text"):
        TlsOptions(server_name=3)  # type: ignore[arg-type]


# --- reading them again ---------------------------------------------------------------------------


def test_reload_takes_the_new_certificate_and_keeps_the_old_one_if_that_is_bad(
    authority: Authority,
) -> None:
    client = client_context(authority.trusted())
    tls = ServerTls(authority.issue("server", "old.example"), None, None)
    handshake(tls(), client, "old.example")

    file = authority.issue("server", "new.example")
    handshake(tls(), client, "old.example")
    tls.reload()
    handshake(tls(), client, "new.example")

    file.write_text("no certificate")
    with pytest.raises(InvalidArgument, match="tls-certificate: "):
        tls.reload()
    handshake(tls(), client, "new.example")
