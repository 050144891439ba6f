"""The options of a gateway, with their limits."""

from dataclasses import dataclass

from queueber.config import DEFAULT_LISTEN, split_address
from queueber.errors import InvalidArgument
from queueber.limits import KIB, MIB, POLL_WAIT_MS_MAX, SECOND_MS

DEFAULT_HTTP = "127.0.0.1:9091"
WAIT_MS = 30 * SECOND_MS
"""How long a poll waits that does not say."""
WAIT_MS_MAX = POLL_WAIT_MS_MAX


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    server: str = DEFAULT_LISTEN
    http: str = DEFAULT_HTTP
    processes: int = 1
    connections_max: int = 10_000
    """Connections of one process; further ones are closed at once."""
    requests_max: int = 1_000
    """Requests under way in one process, without those that wait."""
    waits_max: int = 4_000
    """Requests that wait in one process: long polls, tails. The server lets 4,096 calls of one
    connection wait."""
    body_bytes_max: int = 16 * MIB
    bodies_bytes_max: int = 128 * MIB
    """Bytes of all bodies that one process is receiving."""
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
    shutdown_timeout_ms: int = 10 * SECOND_MS

    def __post_init__(self) -> None:
        for name in ("server", "http"):
            try:
                split_address(getattr(self, name))
            except InvalidArgument as error:
                raise InvalidArgument(f"{name}: {error}") from None
        for name, (least, most) in RANGES.items():
            if not least <= (value := getattr(self, name)) <= most:
                raise InvalidArgument(
                    f"{name.replace('_', '-')}: {value} is outside {least} to {most}"
                )


RANGES = {
    "processes": (1, 64),
    "connections_max": (1, 100_000),
    "requests_max": (1, 100_000),
    "waits_max": (0, 100_000),
    "body_bytes_max": (KIB, 256 * MIB),
    "bodies_bytes_max": (KIB, 64 * 1024 * MIB),
    "answers_bytes_max": (MIB, 64 * 1024 * MIB),
    "header_bytes_max": (KIB, MIB),
    "header_timeout_ms": (100, 600_000),
    "body_timeout_ms": (100, 3_600_000),
    "answer_timeout_ms": (100, 3_600_000),
    "idle_timeout_ms": (100, 3_600_000),
    "clients_max": (1, 100_000),
    "retry_timeout_ms": (0, 600_000),
    "shutdown_timeout_ms": (0, 600_000),
}
"""The lowest and the highest value of each number."""
