"""`queueber gateway`: HTTP beside a server."""

from pathlib import Path

import click

from queueber.cli.exits import USAGE, Failure
from queueber.config import DEFAULT_LISTEN

_DEFAULT_HTTP = "127.0.0.1:9091"


@click.command()
@click.option(
    "--server", default=DEFAULT_LISTEN, show_default=True, envvar="QUEUEBER_ADDRESS",
    show_envvar=True, metavar="HOST:PORT", help="Address of the server.",
)  # fmt: skip
@click.option(
    "--http", default=_DEFAULT_HTTP, show_default=True, envvar="QUEUEBER_HTTP", show_envvar=True,
    metavar="HOST:PORT", help="Address to listen on; port 0 chooses a free port.",
)  # fmt: skip
@click.option(
    "--processes", type=int, default=1, show_default=True, help="Processes that share the port."
)
@click.option(
    "--address-file",
    type=click.Path(path_type=Path),
    help="Write the address into this file when the gateway listens.",
)
@click.option("--log-level", default="info", show_default=True, metavar="TEXT")
@click.option("--log-format", default="auto", show_default=True, metavar="TEXT")
def gateway(
    server: str,
    http: str,
    processes: int,
    address_file: Path | None,
    log_level: str,
    log_format: str,
) -> None:
    """Serve HTTP for a server, until SIGTERM or Ctrl-C.

    \b
    Examples:
      queueber gateway
      queueber gateway --server 10.0.0.5:9090 --http 127.0.0.1:8080 --processes 2

    The gateway is a client of the server: it may run anywhere, any number of times.
    """
    try:
        from queueber.gateway.processes import run
        from queueber.gateway.settings import GatewaySettings
    except ModuleNotFoundError as error:
        raise Failure(
            f"{error.name} is not installed; install it with: pip install 'queueber[http]'", USAGE
        ) from None
    from queueber.logs import configure_logs

    settings = GatewaySettings(server=server, http=http, processes=processes)
    configure_logs(log_level, log_format, for_good=True)
    run(settings, address_file=address_file)
