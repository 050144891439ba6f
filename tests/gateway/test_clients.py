"""Which requests share a client, and what others' wrong credentials do to it."""

import asyncio
from itertools import combinations
from typing import Any

import pytest

from queueber.errors import Unauthenticated
from queueber.gateway import clients
from queueber.gateway.clients import ClientPool, _key
from queueber.gateway.problems import Problem
from queueber.gateway.settings import GatewaySettings
from queueber.model import Credential


class Server:
    """Answers a wrong credential when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers = asyncio.Event()
        self.connected = 0
        monkeypatch.setattr(clients, "connect_async", self.connect)

    async def connect(self, *_: object, token: str, **__: object) -> Any:
        if token == "right":
            self.connected += 1
            return self
        await self.answers.wait()
        raise Unauthenticated("wrong")

    async def aclose(self) -> None:
        pass


async def ask(pool: ClientPool, token: str) -> None:
    async with pool.client_for(Credential(token=token)):
        pass


def test_no_two_credentials_share_a_client() -> None:
    credentials = [
        None,
        Credential(),
        Credential(token="a"),
        Credential(token="a\0b"),
        Credential(user="a", password="b"),
        Credential(user="a\0b", password="c"),
        Credential(user="a", password="b\0c"),
        Credential(token="\0a\0b"),
        Credential(token="', 'a', 'b"),
    ]
    assert [pair for pair in combinations(credentials, 2) if _key(pair[0]) == _key(pair[1])] == []
    assert _key(Credential(user="a", password="b")) == _key(Credential(user="a", password="b"))


def test_wrong_credentials_take_no_client_from_those_with_right_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        server, pool = Server(monkeypatch), ClientPool(GatewaySettings(clients_max=4))
        await ask(pool, "right")
        wrong = [asyncio.ensure_future(ask(pool, f"wrong {at}")) for at in range(10)]
        await asyncio.sleep(0.01)
        await ask(pool, "right")
        server.answers.set()
        told = await asyncio.gather(*wrong, return_exceptions=True)

        assert server.connected == 1
        assert [type(each) for each in told] == [Unauthenticated] * 2 + [Problem] * 8
        assert pool.count == 1
        await ask(pool, "right")

    asyncio.run(run())


def test_a_failure_that_nobody_waited_for_is_not_told_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        server, pool = Server(monkeypatch), ClientPool(GatewaySettings())
        hung_up = asyncio.ensure_future(ask(pool, "wrong"))
        await asyncio.sleep(0.01)
        hung_up.cancel()
        server.answers.set()
        await asyncio.sleep(0.01)
        assert pool.count == 0

    asyncio.run(run())
