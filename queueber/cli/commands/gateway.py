"""`queueber gateway`: HTTP and gRPC beside a server."""

import os
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from queueber.cli.exits import USAGE, Failure
from queueber.cli.flags import F
from queueber.config import DEFAULT_LISTEN
from queueber.gateway.settings import DEFAULT_HTTP, NUMBERS, GatewaySettings
from queueber.memory import collect_seldom
from queueber.tls import TlsOptions

_DEFAULTS = {each.name: each.default for each in fields(GatewaySettings)}
_file = click.Path(path_type=Path, dir_okay=False)


def _number_flags(command: F) -> F:
    """A flag for each bound."""
    for number in reversed(NUMBERS):
        command = click.option(
            number.flag,
            number.name,
            type=int,
            default=_DEFAULTS[number.name],
            show_default=True,
            envvar=number.variable,
            metavar="NUMBER",
            help=number.help,
        )(command)
    return command


def _server_tls_flags(command: F) -> F:
    """How to connect to a server that speaks TLS."""
    for name, kind, text in (
        ("key", _file, "Key of that certificate, if it is in a file of its own."),
        ("certificate", _file, "Certificate of the gateway, if the server asks for one."),
        ("name", str, "Name in the server's certificate, if it is not the host of its address."),
        ("ca", _file, "Authorities that the server's certificate may be from; implies TLS."),
    ):
        command = click.option(
            f"--server-tls-{name}",
            type=kind,
            envvar=f"QUEUEBER_GATEWAY_SERVER_TLS_{name.upper()}",
            show_envvar=True,
            help=text,
        )(command)
    return click.option("--server-tls", is_flag=True, help="Connect to the server with TLS.")(
        command
    )


def _subscription_flags(command: F) -> F:
    """Subscriptions to streams; those of the token are files and variables, as everywhere."""
    for flag, kind, text in (
        ("--public-url", str, "Where receivers of webhooks reach the gateway."),
        ("--webhook-key-file", _file, "PEM file with the Ed25519 keys that sign webhooks."),
        ("--subscriptions-token-file", _file, "File with the token that watches streams."),
    ):
        variable = "QUEUEBER_GATEWAY_" + flag[2:].replace("-", "_").upper()
        command = click.option(flag, type=kind, envvar=variable, show_envvar=True, help=text)(
            command
        )
    return click.option(
        "--webhook-loopback/--no-webhook-loopback",
        default=None,
        help="Whether webhooks may go to this machine.",
    )(command)


@click.command()
@click.option(
    "--server", default=DEFAULT_LISTEN, show_default=True, envvar="QUEUEBER_ADDRESS",
    show_envvar=True, metavar="HOST:PORT", help="Address of the server.",
)  # fmt: skip
@click.option(
    "--http", default=DEFAULT_HTTP, show_default=True, envvar="QUEUEBER_HTTP", show_envvar=True,
    metavar="HOST:PORT", help="Address to listen on; port 0 chooses a free port.",
)  # fmt: skip
@click.option(
    "--grpc", envvar="QUEUEBER_GRPC", show_envvar=True, metavar="HOST:PORT",
    help="Also serve clients of Sluice, with gRPC, on this address; they expect port 50051.",
)  # fmt: skip
@click.option("--tls-certificate", type=_file, help="PEM file; with it the gateway speaks HTTPS.")
@click.option("--tls-key", type=_file, help="Its key, if it is in a file of its own.")
@_server_tls_flags
@click.option(
    "--insecure", is_flag=True,
    help="Listen where other machines can reach it without TLS, or without a credential.",
)  # fmt: skip
@_subscription_flags
@click.option(
    "--allowed-origins", default="", envvar="QUEUEBER_GATEWAY_ALLOWED_ORIGINS", show_envvar=True,
    metavar="ORIGIN,...",
    help="Origins such as https://app.example whose pages may use streams; * is any.",
)  # fmt: skip
@_number_flags
@click.option(
    "--address-file",
    type=click.Path(path_type=Path),
    help="Write the address into this file when the gateway listens.",
)
@click.option(
    "--grpc-address-file",
    type=click.Path(path_type=Path),
    help="Write the address of gRPC into this file.",
)
@click.option("--log-level", default="info", show_default=True, metavar="TEXT")
@click.option("--log-format", default="auto", show_default=True, metavar="TEXT")
@click.option("--listening-fd", type=int, hidden=True)
@click.option("--stops-with-stdin", is_flag=True, hidden=True)
def gateway(
    address_file: Path | None,
    grpc_address_file: Path | None,
    log_level: str,
    log_format: str,
    listening_fd: int | None,
    stops_with_stdin: bool,
    **given: Any,
) -> None:
    """Serve HTTP, and gRPC if asked to, until SIGTERM or Ctrl-C.

    \b
    Examples:
      queueber gateway
      queueber gateway --server 10.0.0.5:9090 --http 127.0.0.1:8080 --processes 2
      queueber gateway --grpc 127.0.0.1:50051

    The gateway is a client of the server: it may run anywhere, any number of times. 'queueber serve
    --http' starts one beside the server.

    The numbers can be set in the environment, too, such as QUEUEBER_GATEWAY_BODY_BYTES_MAX.
    """
    given["server_tls"] = _server_tls(given)
    given["subscriptions_token"] = _subscriptions_token(given.pop("subscriptions_token_file"))
    origins = given["allowed_origins"].split(",")
    given["allowed_origins"] = tuple(each.strip().lower() for each in origins if each.strip())
    settings = GatewaySettings(**given)
    collect_seldom()  # many modules come now, and none of them is garbage
    try:
        from queueber.gateway.processes import run

        if settings.grpc is not None and find_spec("hpack") is None:
            raise ModuleNotFoundError(name="hpack")
    except ModuleNotFoundError as error:
        extras = "http" if settings.grpc is None else "http,grpc"
        raise Failure(
            f"{error.name} is not installed; install it with: pip install 'queueber[{extras}]'",
            USAGE,
        ) from None
    from queueber.logs import configure_logs

    configure_logs(log_level, log_format, for_good=True)
    run(
        settings,
        address_file=address_file,
        grpc_address_file=grpc_address_file,
        listening_fd=listening_fd,
        stops_with_stdin=stops_with_stdin,
    )


def _server_tls(given: dict[str, Any]) -> TlsOptions | None:
    """Taken out of what was given: the settings have one field for them."""
    found = {name: given.pop(f"server_tls_{name}") for name in ("ca", "certificate", "key", "name")}
    is_wanted = given.pop("server_tls")
    if not is_wanted and not any(found.values()):
        return None
    return TlsOptions(found["ca"], found["certificate"], found["key"], found["name"])


def _subscriptions_token(file: Path | None) -> str | None:
    """There is no flag for the token itself: everybody can read the flags of a process."""
    if file is None:
        return os.environ.get("QUEUEBER_GATEWAY_SUBSCRIPTIONS_TOKEN") or None
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"--subscriptions-token-file: {file}: {error}", USAGE) from None
