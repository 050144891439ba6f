"""How programs get a client."""

from queueber.client.api.async_client import AsyncClient
from queueber.client.api.client import Client
from queueber.client.arguments.values import Seconds
from queueber.client.transport.identity import Token
from queueber.config import DEFAULT_LISTEN
from queueber.tls import TlsOptions

CONNECT_TIMEOUT_SECONDS = 5.0
RETRY_TIMEOUT_SECONDS = 30.0


def connect(
    address: str = DEFAULT_LISTEN,
    *,
    connect_timeout: Seconds = CONNECT_TIMEOUT_SECONDS,
    retry_timeout: Seconds = RETRY_TIMEOUT_SECONDS,
    name: str = "",
    token: Token | None = None,
    user: str | None = None,
    password: str | None = None,
    tls: TlsOptions | bool | None = None,
) -> Client:
    """Connect to a server; `Unavailable` when it cannot be reached within `connect_timeout`.

    A call that the server refuses for now, or that certainly had no effect, is retried for
    `retry_timeout`. The server's log and lists of leases show `name` beside the address of
    this program; without one, the name of the program.

    A protected server asks for a `token`, or a `user` with a `password`; `Unauthenticated` when it
    does not know them. The token may be a function that returns it: it is called for each new
    connection, on a thread.
    `tls=True` connects with TLS to a server whose certificate is from an authority that the system
    trusts; `tls=TlsOptions(ca=...)` names another, and has the client's own certificate.
    """
    client = Client(
        address,
        connect_timeout=connect_timeout,
        retry_timeout=retry_timeout,
        name=name,
        token=token,
        user=user,
        password=password,
        tls=tls,
    )
    return client.__enter__()  # connects; a `with` block that enters again does no more


def connect_async(
    address: str = DEFAULT_LISTEN,
    *,
    connect_timeout: Seconds = CONNECT_TIMEOUT_SECONDS,
    retry_timeout: Seconds = RETRY_TIMEOUT_SECONDS,
    name: str = "",
    token: Token | None = None,
    user: str | None = None,
    password: str | None = None,
    tls: TlsOptions | bool | None = None,
) -> AsyncClient:
    """A client that connects in `async with` or with `await`. See `connect` for the arguments.

    In asyncio its calls run on the program's own loop, in trio on a thread. Cancelling a call
    withdraws it where that is still possible; items that a cancelled poll brings are released.
    """
    return AsyncClient(
        address,
        connect_timeout=connect_timeout,
        retry_timeout=retry_timeout,
        name=name,
        token=token,
        user=user,
        password=password,
        tls=tls,
    )
