"""`queueber serve`: run a server."""

from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from queueber.cli.exits import OUR_FAULT, STORE, USAGE, Failure
from queueber.cli.flags import F
from queueber.config import OPTIONS, load_config, parse_file, parse_switch
from queueber.errors import InvalidArgument, QueueberError
from queueber.memory import collect_seldom


def config_flags(command: F) -> F:
    """A flag for each option of the server; its value is text, or None if it is not given."""
    metavars: dict[object, str] = {
        int: "NUMBER",
        Path: "DIR",
        parse_file: "FILE",
        parse_switch: "[true|false]",
    }
    for option in reversed(OPTIONS):
        metavar = metavars.get(option.parse, "TEXT")
        metavar = "FILE" if option.name.endswith("_file") else metavar
        default = "" if option.default in (None, "") else f" [default: {option.default}]"
        text = f"{option.help}{default}"
        more: dict[str, Any] = {"metavar": metavar, "help": text}
        if option.parse is parse_switch:
            more |= {"is_flag": False, "flag_value": "true"}  # it may stand alone
        command = click.option(option.flag, option.name, **more)(command)
    return command


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="TOML file with options: the names of the flags, with underscores.",
)
@click.option(
    "--address-file",
    type=click.Path(path_type=Path),
    help="Write the address into this file when the server is ready.",
)
@click.option(
    "--http-address-file",
    type=click.Path(path_type=Path),
    help="Write the address of the gateway (--http) into this file.",
)
@config_flags
def serve(
    config_file: Path | None,
    address_file: Path | None,
    http_address_file: Path | None,
    **flags: str | None,
) -> None:
    """Run a server, until SIGTERM or Ctrl-C.

    \b
    Examples:
      queueber serve
      queueber serve --data-dir /var/lib/queueber
      queueber serve --listen 0.0.0.0:9090 --tls-certificate server.pem --tls-client-ca ca.pem

    The server listens when it logs 'listening'. The data directory is created if it does not exist;
    a directory with anything but a store of Queueber in it is refused.

    You can also set every option in the environment, such as QUEUEBER_DATA_DIR, or in the file of
    --config. Flags override the environment, and the environment overrides the file.
    """
    config = load_config(flags, file=config_file)
    collect_seldom()  # many modules come now, and none of them is garbage
    # Importing the server takes a while, so the other commands do not.
    from queueber.app import serve as run_server
    from queueber.logs import configure_logs, logs_are_json

    configure_logs(config.log_level, config.log_format, for_good=True)
    try:
        run_server(config, address_file=address_file, http_address_file=http_address_file)
    except Exception as error:
        failure = _explained(error)
        use_json = logs_are_json(config.log_format)
        if use_json or failure.exit_code == OUR_FAULT:
            _log_failure(failure, error)
        raise (Exit(failure.exit_code) if use_json else failure) from error


def _log_failure(failure: Failure, error: Exception) -> None:
    """With JSON logs nothing else is printed, so that every line can be parsed."""
    from structlog import get_logger

    facts = {"exc_info": error} if failure.exit_code == OUR_FAULT else {}
    get_logger("queueber").critical(
        "server_failed", reason=failure.message, exit_code=failure.exit_code, **facts
    )


def _explained(error: Exception) -> Failure:
    match error:
        case InvalidArgument():
            return Failure(str(error), USAGE)
        case QueueberError():
            return Failure(str(error), STORE)
        case _:
            return Failure(
                f"the server stopped because of a bug ({type(error).__name__}: {error}); "
                "its log has the details, and 'queueber verify' checks the store",
                OUR_FAULT,
            )
