"""`queueber serve`: run a server until it is told to stop."""

import errno
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from queueber.cli.exits import OUR_FAULT, STORE, USAGE, Failure
from queueber.config import OPTIONS, Config, Option, load_config
from queueber.errors import InvalidArgument, QueueberError

F = TypeVar("F", bound=Callable[..., object])

_LISTEN_ERRORS = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES, errno.EPERM)


def _flags_of_options(command: F) -> F:
    """A flag for each option of a server. They arrive as text, or None when they are not given."""
    for option in reversed(OPTIONS):
        command = click.option(
            option.flag, option.name, metavar=_metavar(option), help=_help(option)
        )(command)
    return command


def _metavar(option: Option) -> str:
    return {int: "NUMBER", Path: "DIR"}.get(option.parse, "TEXT")  # type: ignore[call-overload,no-any-return]


def _help(option: Option) -> str:
    return option.help if option.default is None else f"{option.help} [default: {option.default}]"


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="TOML file with options, named as the flags are, with underscores.",
)
@click.option(
    "--address-file",
    type=click.Path(path_type=Path),
    help="Write the address into this file once the server listens.",
)
@_flags_of_options
def serve(config_file: Path | None, address_file: Path | None, **flags: str | None) -> None:
    """Run a server until SIGTERM or Ctrl-C.

    \b
    Example:
      queueber serve --data-dir /var/lib/queueber --listen 0.0.0.0:9090

    Every option may also be set in the environment, as in QUEUEBER_DATA_DIR, or in the file of
    --config. A flag wins over the environment, which wins over the file.
    """
    config = load_config(flags, file=config_file)
    # The server's libraries take a while to import, and the other commands do without them.
    from queueber.app import serve as run_server
    from queueber.logs import configure_logs

    configure_logs(config.log_level, config.log_format)
    try:
        run_server(config, address_file=address_file)
    except Exception as error:
        raise _explained(_unwrapped(error), config) from error


def _unwrapped(error: Exception) -> Exception:
    """What went wrong, without the groups in which trio hands it over."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _explained(error: Exception, config: Config) -> Failure:
    match error:
        case InvalidArgument():
            return Failure(str(error), USAGE)
        case QueueberError():
            return Failure(str(error), STORE)
        case OSError(filename=str() | Path() as file):
            return Failure(f"cannot use {file}: {error.strerror}", STORE)
        case OSError() if isinstance(error, socket.gaierror) or error.errno in _LISTEN_ERRORS:
            return _cannot_listen(error, config)
        case _:
            from structlog import get_logger

            get_logger("queueber").critical("failed", exc_info=error)
            return Failure(
                f"the server stopped because of a fault of its own ({type(error).__name__}: "
                f"{error}); its log has the details, and 'queueber verify' checks the store",
                OUR_FAULT,
            )


def _cannot_listen(error: OSError, config: Config) -> Failure:
    # asyncio puts a sentence of its own into strerror.
    reason = (
        "the address is in use"
        if error.errno == errno.EADDRINUSE
        else (error.strerror or str(error)).lower()
    )
    return Failure(
        f"cannot listen on {config.listen}: {reason}; choose another with --listen", STORE
    )
