"""What a gateway has for subscriptions: its own access to the server, keys, and a watcher."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from queueber.client import AsyncClient
from queueber.clock import SystemClock
from queueber.config import is_loopback
from queueber.errors import Unauthenticated
from queueber.gateway.calls import Call
from queueber.gateway.clients import ClientPool
from queueber.gateway.settings import GatewaySettings
from queueber.gateway.streams.subscriptions.refusals import refusal
from queueber.gateway.streams.subscriptions.watcher import Watcher
from queueber.gateway.streams.subscriptions.webhooks.deliveries import Deliveries
from queueber.gateway.streams.subscriptions.webhooks.sender import Sender
from queueber.gateway.streams.subscriptions.webhooks.signing import (
    SigningKeys,
    kept_keys,
    read_keys,
)
from queueber.model import Credential

STATE = "subscriptions"

_NO_TOKEN = (
    "the server is protected, and this gateway has no token to watch streams with: give it one of "
    "role service for every topic, in QUEUEBER_GATEWAY_SUBSCRIPTIONS_TOKEN"
)
_NO_KEYS = (
    "the server is protected, and this gateway has no key to sign webhooks and tokens with: make "
    "one with 'openssl genpkey -algorithm ed25519', and give it with --webhook-key-file"
)


class Subscriptions:
    def __init__(self, settings: GatewaySettings, pool: ClientPool) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self._pool = pool
        self._keys: SigningKeys | None = None
        token = settings.subscriptions_token
        self._credential = Credential(token=token) if token else None
        self.sender = Sender(self.clock, allows_loopback=_allows_loopback(settings))
        deliveries = Deliveries(self.own_client, self.clock, self.sender, self.keys)
        self.watcher = Watcher(self.own_client, self.clock, deliveries)

    @contextlib.asynccontextmanager
    async def own_client(self) -> AsyncIterator[AsyncClient]:
        """The client with which the gateway works for subscriptions, not for a caller."""
        try:
            async with self._pool.client_for(self._credential) as client:
                yield client
        except Unauthenticated as error:
            if self._credential is None:
                raise refusal("SUBSCRIPTIONS_OFF", _NO_TOKEN) from None
            raise refusal(
                "SUBSCRIPTIONS_OFF", f"the server refuses this gateway's own token: {error}"
            ) from None

    async def keys(self) -> SigningKeys:
        if self._keys is None:
            file = self.settings.webhook_key_file
            if file is not None:
                self._keys = read_keys(file)
            elif self._credential is not None:
                raise refusal("SUBSCRIPTIONS_OFF", _NO_KEYS)
            else:
                async with self.own_client() as client:
                    self._keys = await kept_keys(client)
        return self._keys

    async def run(self) -> None:
        """Watch until cancelled."""
        if self.settings.webhook_key_file is not None:
            self._keys = read_keys(self.settings.webhook_key_file)
        await self.watcher.run()


def of(call: Call[Any, Any]) -> Subscriptions:
    found = call.state[STATE]
    assert isinstance(found, Subscriptions)
    return found


def _allows_loopback(settings: GatewaySettings) -> bool:
    """By default on a developer's machine: nobody else reaches it, and nobody needs a token."""
    if settings.webhook_loopback is not None:
        return settings.webhook_loopback
    return is_loopback(settings.http) and settings.subscriptions_token is None


def join(state: dict[str, Any], settings: GatewaySettings, pool: ClientPool) -> Subscriptions:
    """Have the gateway's streams tell of appends."""
    found = Subscriptions(settings, pool)
    state[STATE] = found
    state.setdefault("stream_appended", []).append(found.watcher.appended)
    return found
