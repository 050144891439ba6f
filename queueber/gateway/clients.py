"""The clients of a gateway: one for each credential in use, shared by its requests.

Requests of one caller go over one connection, so the client joins concurrent ones into few calls.
A client that nobody uses for a minute is closed; at the limit, the one unused for longest is.
"""

import asyncio
import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass

from queueber.client import AsyncClient, connect_async
from queueber.errors import QueueberError, Unauthenticated
from queueber.gateway.bounds import Bound
from queueber.gateway.problems import Problem, too_busy
from queueber.gateway.settings import GatewaySettings
from queueber.limits import SECOND_MS
from queueber.model import Credential

_IDLE_SECONDS = 60.0
_SWEEP_SECONDS = 5.0
_NAME = "gateway"

_REFUSALS_MAX = 2_000
"""After so many refused calls a client is replaced. A server ends a connection after 25,000, which
would leave calls of others without an answer; and a client keeps something for each name that it
was asked for."""


@dataclass(slots=True)
class PooledClient:
    key: bytes
    opening: "asyncio.Task[AsyncClient]"
    users: int = 0
    unused_since: float = 0.0
    refusals: int = 0
    is_retired: bool = False

    @property
    def client(self) -> AsyncClient | None:
        """The client; None while it is not connected."""
        opening = self.opening
        is_open = opening.done() and not opening.cancelled() and opening.exception() is None
        return opening.result() if is_open else None


class ClientPool:
    """Use `async with pool.client_for(credential) as client`."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._entries: OrderedDict[bytes, PooledClient] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()
        # Whoever sends wrong credentials must not use up the clients of those with right ones.
        self._openings = Bound("callers are being connected", (settings.clients_max + 1) // 2)

    @property
    def count(self) -> int:
        return len(self._entries)

    @contextlib.asynccontextmanager
    async def client_for(self, credential: Credential | None) -> AsyncIterator[AsyncClient]:
        """The client of that credential, connected; it stays open as long as the block runs."""
        key = _key(credential)
        used = self._entries.get(key)
        if used is None:
            used = self._begin(key, credential)
        self._use(used)
        was_refused = False
        try:
            # Shielded: others may wait for the same client.
            yield await asyncio.shield(used.opening)
        except (QueueberError, Problem):  # a room may have its own answer for a refusal
            was_refused = True
            raise
        finally:
            self.leave(used, was_refused=was_refused)

    def use_connected(self, credential: Credential | None) -> "PooledClient | None":
        """As `client_for`, for a caller that awaits nothing: it must `leave` the client once.

        None if the client is not connected.
        """
        used = self._entries.get(_key(credential))
        if used is None or used.client is None:
            return None
        self._use(used)
        return used

    def _use(self, used: "PooledClient") -> None:
        self._entries.move_to_end(used.key)
        used.users += 1

    def leave(self, used: "PooledClient", *, was_refused: bool) -> None:
        used.users -= 1
        used.refusals += was_refused
        used.unused_since = used.opening.get_loop().time()
        self._retire_if_worn(used)

    def _begin(self, key: bytes, credential: Credential | None) -> PooledClient:
        self._openings.take()
        try:
            self._make_room()
        except BaseException:
            self._openings.give_back()
            raise
        opening = asyncio.ensure_future(self._open(credential))
        entry = self._entries[key] = PooledClient(key, opening)

        def opened(opening: "asyncio.Future[AsyncClient]") -> None:
            self._openings.give_back()
            # Nobody may wait for it any more; the next request must not get an old failure.
            if self._entries.get(key) is entry:
                self._retire_if_worn(entry)

        entry.opening.add_done_callback(opened)
        return entry

    async def _open(self, credential: Credential | None) -> AsyncClient:
        settings, given = self._settings, credential or Credential()
        if credential is None and settings.needs_credential:
            raise Unauthenticated("authorization: this gateway needs a token, or a user's password")
        seconds = settings.retry_timeout_ms / SECOND_MS
        return await connect_async(
            settings.server,
            connect_timeout=seconds,
            retry_timeout=seconds,
            name=_NAME,
            token=given.token or None,
            user=given.user or None,
            password=given.password or None,
            tls=settings.server_tls,
        )

    def _retire_if_worn(self, entry: PooledClient) -> None:
        """Requests that come now get a new client; those that use this one go on."""
        has_failed = entry.opening.done() and entry.client is None
        if has_failed or entry.refusals >= _REFUSALS_MAX:
            if self._entries.get(entry.key) is entry:
                del self._entries[entry.key]
            entry.is_retired = True
        if entry.is_retired and not entry.users:
            self._close(entry)

    def _make_room(self) -> None:
        if len(self._entries) < self._settings.clients_max:
            return
        for key, entry in self._entries.items():  # the one unused for longest is the first
            if not entry.users:
                self._close(self._entries.pop(key))
                return
        raise too_busy(f"the gateway is busy: {self._settings.clients_max} callers; retry")

    def _close(self, entry: PooledClient) -> None:
        closing = asyncio.ensure_future(_close_entry(entry))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def run(self) -> None:
        """Close clients that nobody uses, until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            for key, entry in list(self._entries.items()):
                if not entry.users and loop.time() - entry.unused_since > _IDLE_SECONDS:
                    self._close(self._entries.pop(key))

    async def aclose(self) -> None:
        """Close all. Items that polls are about to get are released first."""
        while self._entries:
            self._close(self._entries.popitem()[1])
        await asyncio.gather(*self._closing, return_exceptions=True)


async def _close_entry(entry: PooledClient) -> None:
    if not entry.opening.done():
        entry.opening.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await (await entry.opening).aclose()


def _key(credential: Credential | None) -> bytes:
    """A digest: a dump of the table shows no secret."""
    if credential is None:
        return b""
    # Quoted: no text of one part can be taken for two.
    parts = repr((credential.token, credential.user, credential.password))
    return hashlib.sha256(parts.encode()).digest()
