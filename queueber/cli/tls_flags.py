"""The flags of TLS, which every command that talks to a server has."""

from collections.abc import Callable
from typing import Any

import click

from queueber.tls import TlsOptions


def _file_flag(name: str, variable: str, help: str) -> Callable[[Any], Any]:
    return click.option(
        name, envvar=variable, show_envvar=True, metavar="FILE", help=f"{help} Implies --tls."
    )


# The server's own certificate has other variables: both may run in one environment.
tls_flags = (
    click.option(
        "--tls",
        is_flag=True,
        envvar="QUEUEBER_TLS",
        show_envvar=True,
        help="Connect with TLS, to a server that the authorities of this system vouch for.",
    ),
    _file_flag("--tls-ca", "QUEUEBER_TLS_CA", "PEM file with the authorities to trust instead."),
    _file_flag(
        "--tls-certificate",
        "QUEUEBER_TLS_CLIENT_CERTIFICATE",
        "PEM file with the certificate by which the server knows this client.",
    ),
    _file_flag(
        "--tls-key",
        "QUEUEBER_TLS_CLIENT_KEY",
        "PEM file with its key, unless the certificate's file has it.",
    ),
)


def tls_options(
    *, tls: bool, tls_ca: str | None, tls_certificate: str | None, tls_key: str | None
) -> TlsOptions | None:
    """What the flags say; None: a plain connection."""
    if not (tls or tls_ca or tls_certificate or tls_key):
        return None
    return TlsOptions(tls_ca or None, tls_certificate or None, tls_key or None)
