"""The server's options, which have the same names as flags, in the environment and in a file.

A flag overrides the environment (`QUEUEBER_<OPTION>`), the environment overrides the TOML file, and
the file overrides the default. `OPTIONS` is the only list of them.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import cast

from queueber.errors import InvalidArgument
from queueber.limits import (
    ITEM_WIRE_BYTES,
    KIB,
    MESSAGE_BYTES_CEILING,
    MESSAGE_OVERHEAD_BYTES,
    MIB,
    PAYLOAD_BYTES_MAX,
    POLL_ITEMS_CEILING,
    POLL_WAIT_MS_MAX,
)

DEFAULT_LISTEN = "127.0.0.1:9090"
_DURABILITIES = ("sync", "os")
_LOG_LEVELS = ("debug", "info", "warning", "error")
_QUOTAS = (
    "caller_calls_per_second_max",
    "caller_bytes_per_second_max",
    "caller_queues_max",
    "caller_topics_max",
)
_LOG_FORMATS = ("auto", "console", "json")


def default_data_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's data folder, as the XDG specification names it."""
    given = Path(environment.get("XDG_DATA_HOME", ""))
    base = given if given.is_absolute() else Path.home() / ".local" / "share"
    return base / "queueber"


@dataclass(frozen=True, slots=True)
class Config:
    listen: str
    data_dir: Path
    durability: str
    item_bytes_max: int
    payload_bytes_max: int
    message_bytes_max: int
    poll_items_max: int
    poll_wait_ms_max: int
    connections_max: int
    calls_in_flight_max: int
    waiting_polls_max: int
    auto_create_topics: bool
    shutdown_timeout_ms: int
    log_level: str
    log_format: str
    tokens_file: Path | None = None
    jwt_keys_file: Path | None = None
    jwt_audience: str = ""
    jwt_issuer: str = ""
    audit_file: Path | None = None
    caller_calls_per_second_max: int = 0
    caller_bytes_per_second_max: int = 0
    caller_queues_max: int = 0
    caller_topics_max: int = 0

    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    insecure: bool = False
    http: str = ""
    grpc: str = ""

    @property
    def is_protected(self) -> bool:
        """Whether callers must authenticate."""
        return self.tokens_file is not None or self.jwt_keys_file is not None

    @property
    def addresses(self) -> dict[str, str]:
        """Where the server listens, by option: itself, and the gateway beside it."""
        given = {"listen": self.listen, "http": self.http, "grpc": self.grpc}
        return {name: address for name, address in given.items() if address}

    def __post_init__(self) -> None:
        for name, address in self.addresses.items():
            try:
                split_address(address)
            except InvalidArgument as error:
                raise _wrong(name, str(error)) from None
        if self.grpc and not self.http:
            raise _wrong("grpc", "the gateway serves it; give its address, http, too")
        _check_choice("durability", self.durability, _DURABILITIES)
        _check_choice("log_level", self.log_level, _LOG_LEVELS)
        _check_choice("log_format", self.log_format, _LOG_FORMATS)
        _check_range("message_bytes_max", self.message_bytes_max, 64 * KIB, MESSAGE_BYTES_CEILING)
        # The largest item must fit into an answer.
        item_ceiling = _largest(self.message_bytes_max)
        _check_range("item_bytes_max", self.item_bytes_max, 1, item_ceiling)
        _check_range("payload_bytes_max", self.payload_bytes_max, 1, item_ceiling)
        _check_range("poll_items_max", self.poll_items_max, 1, POLL_ITEMS_CEILING)
        _check_range("poll_wait_ms_max", self.poll_wait_ms_max, 1, POLL_WAIT_MS_MAX)
        _check_range("connections_max", self.connections_max, 1, 100_000)
        _check_range("calls_in_flight_max", self.calls_in_flight_max, 1, 1_000_000)
        _check_range("waiting_polls_max", self.waiting_polls_max, 0, 1_000_000)
        _check_range("shutdown_timeout_ms", self.shutdown_timeout_ms, 0, 600_000)
        self._check_callers()
        _check_exposure(self)

    def _check_callers(self) -> None:
        for name in _QUOTAS:
            value = getattr(self, name)
            _check_range(name, value, 0, 1 << 40)
            if value and not self.is_protected:
                raise _wrong(name, "callers are not known; protect the server with tokens-file")
        for name in ("jwt_audience", "jwt_issuer"):
            if bool(getattr(self, name)) != (self.jwt_keys_file is not None):
                raise _wrong(name, "give jwt-keys-file, jwt-audience and jwt-issuer together")

    def shown(self) -> dict[str, object]:
        """The options as the server logs them at its start."""
        values = asdict(self).items()
        return {name: v if isinstance(v, int | str) else str(v or "") for name, v in values}


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    parse: Callable[[str], object]
    default: object
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "QUEUEBER_" + self.name.upper()


def parse_file(text: str) -> Path:
    return Path(text)


def parse_switch(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidArgument(f"{text!r} is not true or false")
    return text.lower() == "true"


OPTIONS = (
    Option("listen", str, DEFAULT_LISTEN, "Address to listen on; port 0 chooses a free port."),
    Option("data_dir", Path, None, "Directory of the store. [default: the user's data folder]"),
    Option(
        "durability", str, "sync",
        "sync: answer after the data is on disk; nothing that was acknowledged is lost. os: answer "
        "after the operating system has the data, which is synced once a second; a crash of the "
        "server loses nothing, a power failure or a crash of the machine loses the last second or "
        "two.",
    ),
    Option("item_bytes_max", int, 4 * MIB, "Largest contents of one item, in bytes."),
    Option(
        "payload_bytes_max", int, None,
        "Largest payload of one message of a topic, in bytes. [default: 4 MiB, or what a call may "
        "have]",
    ),
    Option(
        "message_bytes_max", int, 32 * MIB,
        "Largest call, in bytes. An answer is no larger than that, and at most 2 MiB larger than "
        "the largest item.",
    ),
    Option("poll_items_max", int, 1000, "Most items in one poll."),
    Option("poll_wait_ms_max", int, POLL_WAIT_MS_MAX, "Longest wait of a call, in milliseconds."),
    Option("connections_max", int, 10_000, "Most connections at the same time."),
    Option("calls_in_flight_max", int, 10_000, "Most calls under way, without those that wait."),
    Option("waiting_polls_max", int, 100_000, "Most calls that wait at the same time."),
    Option(
        "auto_create_topics", parse_switch, True,
        "Whether a publish creates a topic that does not exist: true or false.",
    ),
    Option("shutdown_timeout_ms", int, 10_000, "How long a shutdown waits for calls, in ms."),
    Option("log_level", str, "info", "debug, info, warning or error."),
    Option("log_format", str, "auto", "console, json, or auto: console on a terminal."),
    Option(
        "tokens_file", Path, None,
        "Tokens, users and certificates that may connect, from 'queueber token'. With it, or with "
        "jwt_keys_file, callers must authenticate. Read again on SIGHUP.",
    ),
    Option(
        "jwt_keys_file", Path, None,
        "Key set (JWKS) of those who sign JSON Web Tokens. Read again on SIGHUP.",
    ),
    Option("jwt_audience", str, "", "The audience (aud) that JSON Web Tokens must be for."),
    Option("jwt_issuer", str, "", "The issuer (iss) that JSON Web Tokens must be from."),
    Option(
        "audit_file", Path, None,
        "File for the audit log, one JSON object a line. Opened again on SIGHUP. [default: the "
        "log, if the server is protected]",
    ),
    Option("caller_calls_per_second_max", int, 0, "Calls a second of one caller; 0: no limit."),
    Option(
        "caller_bytes_per_second_max", int, 0,
        "Bytes a second of one caller, of its calls and their answers; 0: no limit.",
    ),
    Option(
        "caller_queues_max", int, 0,
        "Queues under the names that a caller may administer, when it creates one; 0: no limit.",
    ),
    Option("caller_topics_max", int, 0, "The same for topics; 0: no limit."),
    Option(
        "tls_certificate", parse_file, None,
        "PEM file with the server's certificate and those between it and its authority. Given: "
        "clients must use TLS. Read again on SIGHUP, as are the next two.",
    ),
    Option(
        "tls_key", parse_file, None,
        "PEM file with the key of the certificate. [default: it is in the certificate's file]",
    ),
    Option(
        "tls_client_ca", parse_file, None,
        "PEM file with authorities: clients must have a certificate of one of them. With tokens, "
        "they may have one instead.",
    ),
    Option(
        "insecure", parse_switch, False,
        "Listen on an address that other machines can reach, though there is no TLS or no "
        "authentication: true or false.",
    ),
    Option(
        "http", str, "",
        "Address of a gateway to start beside the server, such as 127.0.0.1:9091. It has the same "
        "certificate. [default: none is started]",
    ),
    Option(
        "grpc", str, "",
        "Address on which that gateway serves clients of Sluice with gRPC, such as "
        "127.0.0.1:50051. [default: none]",
    ),
)  # fmt: skip


def load_config(
    flags: Mapping[str, str | None],
    environment: Mapping[str, str] = os.environ,
    file: Path | None = None,
) -> Config:
    """Merge all sources. Raises `InvalidArgument`, which names the source of a wrong option."""
    from_file = _read_file(file) if file is not None else {}
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    for option in OPTIONS:
        name = option.name
        given: object = flags.get(name)
        if given is not None:
            sources[name] = option.flag
        elif given := environment.get(option.variable):
            sources[name] = option.variable
        elif (given := from_file.get(name)) is not None:
            sources[name] = f"{name} in {file}"
        values[name] = (
            option.default if given is None else _parse(option, str(given), sources[name])
        )
    if values["data_dir"] is None:
        values["data_dir"] = default_data_dir(environment)
    if values["payload_bytes_max"] is None:
        message_bytes_max = cast(int, values["message_bytes_max"])
        values["payload_bytes_max"] = max(1, min(PAYLOAD_BYTES_MAX, _largest(message_bytes_max)))
    try:
        return Config(**values)  # type: ignore[arg-type]  # each was parsed to its option's type
    except InvalidArgument as error:
        name, _, text = str(error).partition(": ")
        raise InvalidArgument(f"{sources.get(name.replace('-', '_'), name)}: {text}") from None


def _read_file(file: Path) -> dict[str, object]:
    try:
        content = tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"config: cannot read {file}: {error}") from error
    known = {option.name for option in OPTIONS}
    if unknown := sorted(set(content) - known):
        raise InvalidArgument(
            f"config: {file} sets {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        )
    return content


def _parse(option: Option, text: str, source: str) -> object:
    try:
        return option.parse(text)
    except ValueError:
        raise InvalidArgument(f"{source}: {text!r} is not a number") from None
    except InvalidArgument as error:
        raise InvalidArgument(f"{source}: {error}") from None


def split_address(address: object) -> tuple[str, int]:
    """Host and port of `host:port`, also of `[::1]:9090`."""
    host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    is_host = host and "/" not in host and (":" not in host or host[0] + host[-1] == "[]")
    if not colon or not is_host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise InvalidArgument(f"address: {address!r} is not host:port, as in {DEFAULT_LISTEN}")
    return host.strip("[]"), int(port)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach the address. Of names, only `localhost` is known to."""
    host, _ = split_address(address)
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def authenticates(config: Config) -> bool:
    """Whether callers of the server have to say who they are."""
    return config.is_protected or config.tls_client_ca is not None


def _check_exposure(config: Config) -> None:
    if config.tls_certificate is None:
        for name, given in (("tls_key", config.tls_key), ("tls_client_ca", config.tls_client_ca)):
            if given is not None:
                raise _wrong(name, "it needs a certificate; give tls_certificate, too")
    if config.insecure:
        return
    missing = [
        *(["TLS (--tls-certificate)"] if config.tls_certificate is None else []),
        *([] if authenticates(config) else ["authentication (--tokens-file)"]),
    ]
    for name, address in config.addresses.items():
        if missing and not is_loopback(address):
            raise _wrong(
                name,
                f"other machines can reach {address}, and the server has no "
                f"{' and no '.join(missing)}; set it up as docs/security.md says, listen on "
                "127.0.0.1, or give --insecure if everybody who can reach the address may do "
                "everything",
            )


def _largest(message_bytes_max: int) -> int:
    """The largest item or payload that fits into a message."""
    return message_bytes_max - MESSAGE_OVERHEAD_BYTES - ITEM_WIRE_BYTES


def _wrong(name: str, text: str) -> InvalidArgument:
    return InvalidArgument(f"{name.replace('_', '-')}: {text}")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise _wrong(name, f"{value!r} is not one of {', '.join(choices)}")


def _check_range(name: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise _wrong(name, f"{value} is outside {lowest} to {highest}")
