"""The options of a gateway, with their limits."""

import re
from dataclasses import dataclass
from pathlib import Path

from queueber.config import DEFAULT_LISTEN, is_loopback, split_address
from queueber.errors import InvalidArgument
from queueber.limits import KIB, LEASE_MS_MAX, MIB, POLL_WAIT_MS_MAX, SECOND_MS
from queueber.tls import TlsOptions

DEFAULT_HTTP = "127.0.0.1:9091"
WAIT_MS = 30 * SECOND_MS
"""How long a poll waits that does not say."""
WAIT_MS_MAX = POLL_WAIT_MS_MAX
_PUBLIC_URL = re.compile(r"https?://[A-Za-z0-9._:\[\]-]{1,255}(/[A-Za-z0-9._~/-]*)?")
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[a-z0-9.\[\]:_-]+")
_GIB_64 = 64 * 1024 * MIB


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    server: str = DEFAULT_LISTEN
    http: str = DEFAULT_HTTP
    grpc: str | None = None
    """Address for clients of Sluice; None: there is no gRPC."""
    processes: int = 1
    connections_max: int = 10_000
    """Connections of one process; further ones are closed at once."""
    requests_max: int = 10_000
    """Requests under way in one process, without those that wait."""
    waits_max: int = 4_000
    """Requests that wait in one process: long polls, tails. The server lets 4,096 calls of one
    connection wait."""
    body_bytes_max: int = 16 * MIB
    bodies_bytes_max: int = 128 * MIB
    """Bytes of all bodies that one process is receiving or handling."""
    answers_bytes_max: int = 256 * MIB
    """Bytes of answers that callers have not read yet, in one process."""
    header_bytes_max: int = 32 * KIB
    header_timeout_ms: int = 10 * SECOND_MS
    """How long a caller may take to send the head of a request."""
    body_timeout_ms: int = 60 * SECOND_MS
    """How long it may take to send the body."""
    answer_timeout_ms: int = 60 * SECOND_MS
    """How long it may take to read an answer that does not fit into the socket's buffer."""
    idle_timeout_ms: int = 75 * SECOND_MS
    """How long a connection without a request is kept."""
    clients_max: int = 1_000
    """Connections of one process to the server: one for each credential in use."""
    retry_timeout_ms: int = 5 * SECOND_MS
    """How long a call is retried while the server is away, before the caller gets 503."""
    stream_wait_ms: int = 30 * SECOND_MS
    """How long a long poll of a stream waits for data; proxies give up after a minute or so."""
    consume_wait_ms: int = 30 * SECOND_MS
    """How long a consumer of KalamDB's kind waits that does not say."""
    consume_wait_ms_max: int = 300 * SECOND_MS
    """How long it may wait; one that asks for more waits so long."""
    consume_lease_ms: int = 60 * SECOND_MS
    """How long its messages are its own; after that they come back."""
    sql_calls_max: int = 32
    """Calls of SQL under way in one process."""
    sql_timeout_ms: int = 30 * SECOND_MS
    """How long the statements of one call may take."""
    grpc_streams_max: int = 1_000
    """Streams of gRPC that are open in one process. The server has a thousand subscriptions of one
    connection."""
    grpc_heartbeat_ms: int = 0
    """How long after the last message a stream gets a heartbeat; 0: never, because the command line
    of Sluice takes one for the end of the stream."""
    shutdown_timeout_ms: int = 10 * SECOND_MS
    allowed_origins: tuple[str, ...] = ()
    """Origins such as `https://app.example` whose pages may use streams; `*` is any."""
    tls_certificate: Path | None = None
    """PEM file of the HTTP port's certificate; without one it speaks plain HTTP."""
    tls_key: Path | None = None
    server_tls: TlsOptions | None = None
    """How to connect to a server that speaks TLS."""
    insecure: bool = False
    """Whether other machines may reach a port without TLS, or use it without a credential."""

    subscriptions_token: str | None = None
    """The gateway's own token, to watch streams with; only protected servers need it."""
    webhook_key_file: Path | None = None
    """PEM file of the keys that sign webhooks; only protected servers need it."""
    webhook_loopback: bool | None = None
    """Whether webhooks may go to this machine; None: if only it reaches the gateway, and no token
    is needed."""
    public_url: str | None = None
    """Where receivers of webhooks reach the gateway; None: where the creator did."""

    @property
    def needs_credential(self) -> bool:
        """Whether a request must carry one: else it would have the gateway's own certificate, or
        whoever reaches the port could use a server that is not protected."""
        has_certificate = self.server_tls is not None and self.server_tls.certificate is not None
        return has_certificate or not (self.insecure or all(map(is_loopback, self._ports)))

    @property
    def _ports(self) -> list[str]:
        return [self.http] if self.grpc is None else [self.http, self.grpc]

    def __post_init__(self) -> None:
        for name in ("server", "http", "grpc"):
            try:
                if getattr(self, name) is not None:
                    split_address(getattr(self, name))
            except InvalidArgument as error:
                raise InvalidArgument(f"{name}: {error}") from None
        for origin in self.allowed_origins:
            if not _ORIGIN.fullmatch(origin):
                raise InvalidArgument(
                    f"allowed-origins: {origin!r} is no origin in lower case such as "
                    "https://app.example, nor *"
                )
        if self.tls_key is not None and self.tls_certificate is None:
            raise InvalidArgument("tls-key: it needs a certificate; give tls-certificate, too")
        for name in ("http", "grpc"):
            address = getattr(self, name) or self.http
            if self.tls_certificate is None and not (self.insecure or is_loopback(address)):
                raise InvalidArgument(
                    f"{name}: other machines can reach {address}, and the gateway has no TLS "
                    "(--tls-certificate); set it up as docs/security.md says, listen on 127.0.0.1, "
                    "or give --insecure if everybody who can reach the address may read what is "
                    "sent"
                )
        if self.public_url is not None and not _PUBLIC_URL.fullmatch(self.public_url):
            raise InvalidArgument(
                f"public-url: {self.public_url!r} is not like https://streams.example"
            )
        for number in NUMBERS:
            if not number.least <= (value := getattr(self, number.name)) <= number.most:
                raise InvalidArgument(
                    f"{number.flag[2:]}: {value} is outside {number.least} to {number.most}"
                )


@dataclass(frozen=True, slots=True)
class Bounded:
    """A number that an operator may set, and what for."""

    name: str
    least: int
    most: int
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "QUEUEBER_GATEWAY_" + self.name.upper()


NUMBERS = (
    Bounded("processes", 1, 64, "Processes that share the port."),
    Bounded("connections_max", 1, 100_000, "Most connections of a process."),
    Bounded("requests_max", 1, 100_000, "Most requests under way, without those that wait."),
    Bounded("waits_max", 0, 100_000, "Most requests that wait, such as long polls."),
    Bounded("body_bytes_max", KIB, 256 * MIB, "Largest body of a request, in bytes."),
    Bounded("bodies_bytes_max", KIB, _GIB_64, "Bytes of all bodies being received or handled."),
    Bounded("answers_bytes_max", MIB, _GIB_64, "Bytes of answers that callers have not read."),
    Bounded("header_bytes_max", KIB, MIB, "Largest head of a request, in bytes."),
    Bounded("header_timeout_ms", 100, 600_000, "How long the head of a request may take."),
    Bounded("body_timeout_ms", 100, 3_600_000, "How long the body of a request may take."),
    Bounded("answer_timeout_ms", 100, 3_600_000, "How long a caller may take to read."),
    Bounded("idle_timeout_ms", 100, 3_600_000, "How long an idle connection is kept."),
    Bounded("clients_max", 1, 100_000, "Most connections to the server: one a credential."),
    Bounded("retry_timeout_ms", 0, 600_000, "How long to try while the server is away."),
    Bounded("stream_wait_ms", 1, 600_000, "How long a long poll of a stream waits for data."),
    Bounded("consume_wait_ms", 0, 3_600_000, "How long a KalamDB consumer waits by default."),
    Bounded("consume_wait_ms_max", 0, 3_600_000, "How long a KalamDB consumer may wait."),
    Bounded("consume_lease_ms", 1, LEASE_MS_MAX, "How long a KalamDB consumer has its messages."),
    Bounded("sql_calls_max", 1, 10_000, "Most calls of SQL under way."),
    Bounded("sql_timeout_ms", 100, 3_600_000, "How long the statements of a call may take."),
    Bounded("grpc_streams_max", 1, 1_000, "Most open streams of gRPC."),
    Bounded("grpc_heartbeat_ms", 0, 3_600_000, "When a quiet stream of gRPC is sent a heartbeat."),
    Bounded("shutdown_timeout_ms", 0, 600_000, "How long a shutdown waits for requests."),
)
"""The numbers, with the lowest and the highest value of each."""
