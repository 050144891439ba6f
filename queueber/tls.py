"""TLS: the contexts of servers and of clients, and the name in a caller's certificate.

Both sides speak TLS 1.2 or 1.3. In TLS 1.2 every cipher has forward secrecy and authenticates what
it encrypts, and a client cannot have the handshake repeated.
"""

import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from queueber.errors import InvalidArgument

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2; those of TLS 1.3 are all good."""


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """How a client connects with TLS.

    `ca` is a PEM file with the certificates of authorities that the client trusts, instead of those
    of the system. `certificate` and `key` are PEM files by which the server knows the client; `key`
    may be left out if the certificate's file has the key, too. The server's certificate must be for
    `server_name`; without one, for the host of the address.
    """

    ca: str | os.PathLike[str] | None = None
    certificate: str | os.PathLike[str] | None = None
    key: str | os.PathLike[str] | None = None
    server_name: str | None = None

    def __post_init__(self) -> None:
        for name in ("ca", "certificate", "key"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, str | os.PathLike):
                raise InvalidArgument(f"tls.{name}: {given!r} is not the path of a file")
        if self.key is not None and self.certificate is None:
            raise InvalidArgument("tls.key: there is no certificate for it; give certificate=, too")
        if self.server_name is not None and not isinstance(self.server_name, str):
            raise InvalidArgument(f"tls.server_name: {self.server_name!r} is not text")


def to_tls(given: object) -> TlsOptions | None:
    """The argument `tls` of `connect`: True means the authorities that the system trusts."""
    if given is None or given is False:
        return None
    if given is True:
        return TlsOptions()
    if isinstance(given, TlsOptions):
        return given
    raise InvalidArgument(f"tls: {given!r} is not True or TlsOptions(...)")


# --- contexts -------------------------------------------------------------------------------------


def server_context(
    certificate: Path,
    key: Path | None = None,
    client_ca: Path | None = None,
    *,
    needs_client_certificate: bool = True,
) -> ssl.SSLContext:
    """A server's context, from PEM files; `InvalidArgument` names the option that is wrong.

    Without `key`, the certificate's file has the key, too. With `client_ca`, clients show a
    certificate of one of these authorities; unless it is needed, they may also show none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _harden(context)
    # A ticket saves the next handshake of the same client; ours stay connected.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    _load_chain(context, "tls-", certificate, key)
    if client_ca is not None:
        _load_authorities(context, "tls-client-ca", client_ca)
        needs = needs_client_certificate
        context.verify_mode = ssl.CERT_REQUIRED if needs else ssl.CERT_OPTIONAL
    return context


def client_context(options: TlsOptions) -> ssl.SSLContext:
    """A client's context, from the files as they are now."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _harden(context)
    if options.ca is None:
        context.load_default_certs()
    else:
        _load_authorities(context, "tls.ca", options.ca)
    if options.certificate is not None:
        _load_chain(context, "tls.", options.certificate, options.key)
    return context


def _harden(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION


def _load_chain(
    context: ssl.SSLContext,
    prefix: str,
    certificate: str | os.PathLike[str],
    key: str | os.PathLike[str] | None,
) -> None:
    """`prefix` makes `certificate` and `key` the names that the caller knows."""
    _check_readable(f"{prefix}certificate", certificate)
    if key is not None:
        _check_readable(f"{prefix}key", key)
    named = f"{prefix}certificate" if key is None else f"{prefix}key"
    try:
        context.load_cert_chain(certificate, key, password=_refuse_encrypted(named))
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            text = f"{key or certificate} is not the key of the certificate in {certificate}"
            raise InvalidArgument(f"{named}: {text}") from None
        files = f"{certificate}" if key is None else f"{certificate} and {key}"
        raise InvalidArgument(
            f"{prefix}certificate: {files} are not a certificate and its key in PEM format "
            f"({_words(error)})"
        ) from None


def _load_authorities(context: ssl.SSLContext, name: str, file: str | os.PathLike[str]) -> None:
    _check_readable(name, file)
    try:
        context.load_verify_locations(cafile=file)
    except ssl.SSLError as error:
        raise InvalidArgument(
            f"{name}: {os.fspath(file)} has no certificates in PEM format ({_words(error)})"
        ) from None


def _check_readable(name: str, file: str | os.PathLike[str]) -> None:
    """The ssl module tells the reason, but not the file."""
    try:
        with Path(file).open("rb"):
            pass
    except OSError as error:
        raise InvalidArgument(f"{name}: cannot read {os.fspath(file)}: {error.strerror}") from None


def _refuse_encrypted(name: str) -> Callable[[], NoReturn]:
    """Otherwise OpenSSL would ask for a password on the terminal."""

    def refuse() -> NoReturn:
        raise InvalidArgument(f"{name}: the key is encrypted; store it without a password")

    return refuse


def _words(error: ssl.SSLError) -> str:
    return (error.reason or "unknown format").lower().replace("_", " ")


class ServerTls:
    """The context of a server, which can be made anew from the same files."""

    def __init__(
        self,
        certificate: Path,
        key: Path | None,
        client_ca: Path | None,
        *,
        needs_client_certificate: bool = True,
    ) -> None:
        self._make = partial(
            server_context,
            certificate,
            key,
            client_ca,
            needs_client_certificate=needs_client_certificate,
        )
        self._context = self._make()

    def __call__(self) -> ssl.SSLContext:
        """The context for a new connection."""
        return self._context

    def reload(self) -> None:
        """Read the files again. If one is wrong, it raises, and the context stays as it is."""
        self._context = self._make()


# --- names ----------------------------------------------------------------------------------------


def certificate_name(certificate: Mapping[str, Any] | None) -> str:
    """Who a verified certificate is for: its common name, or else its first DNS or URI name.

    Empty without a certificate. The argument is what `getpeercert` of the ssl module returns.
    """
    if not certificate:
        return ""
    subject = [pair for pairs in certificate.get("subject", ()) for pair in pairs]
    # The last one is the most specific.
    for kind, name in reversed(subject):
        if kind == "commonName" and name:
            return str(name)
    for kind, name in certificate.get("subjectAltName", ()):
        if kind in ("DNS", "URI") and name:
            return str(name)
    return ""
