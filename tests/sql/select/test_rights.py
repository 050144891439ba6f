"""What a caller may not read is not there: neither as a table nor in a list."""

import asyncio
from pathlib import Path

import queueber
from queueber.errors import NotFound
from queueber.sql.select import Engines, SelectResult, select
from queueber.testing import running_server
from tests.support.callers import add_token


async def outcomes(
    address: str, token: str, engines: Engines, texts: list[str]
) -> list[SelectResult | BaseException]:
    async with queueber.connect_async(address, token=token) as client:
        return [
            (await asyncio.gather(select(client, text, engines=engines), return_exceptions=True))[0]
            for text in texts
        ]


def test_reader_sees_only_its_queues_and_topics(
    tmp_path: Path, engines: Engines, loop: asyncio.AbstractEventLoop
) -> None:
    tokens = tmp_path / "tokens.toml"
    admin = add_token(tokens, "admin")
    reader = add_token(tokens, "reader", queues=("own-*",), topics=("own-*",))
    worker = add_token(tokens, "worker", queues=("own-*",), topics=("own-*",))
    with running_server("--tokens-file", str(tokens)) as server:
        with queueber.connect(server.address, token=admin) as client:
            for name in ("own-1", "other-1"):
                client.create_queue(name, attempts_max=1)
                queue = client.queue(name)
                queue.add([b"1", b"2"], batch=f"b-{name}")
                queue.poll().fail("broken")
                queue.poll()
                client.topic(name).publish([b"m"])
                client.topic(name).create_group(f"g-{name}")
                client.topic(name).create_group(
                    f"s-{name}", kind="shared", attempts_max=1, start="earliest"
                )
                client.topic(name).group(f"s-{name}").poll().fail("no use")
        texts = [
            "SELECT name FROM system.topics ORDER BY ALL",
            "SELECT topic_id, group_id FROM system.topic_offsets ORDER BY ALL",
            "SELECT name FROM system.queues ORDER BY ALL",
            "SELECT queue, items FROM system.leases ORDER BY ALL",
            "SELECT queue, batch FROM system.batches ORDER BY ALL",
            "SELECT queue, topic, last_error FROM system.dead_letters ORDER BY ALL",
            "SELECT count(*) FROM system.topics WHERE name = 'other-1'",
            "SELECT count(*) FROM topic('own-1'), queue('own-1')",
            "SELECT count(*) FROM topic('other-1')",
            "SELECT count(*) FROM topic('nix-1')",
            "SELECT count(*) FROM queue('other-1')",
            "SELECT count(*) FROM results('other-1')",
            "SELECT count(*) FROM dead('other-1')",
            "SELECT count(*) FROM queue('own-2')",
        ]
        seen = loop.run_until_complete(outcomes(server.address, reader, engines, texts))
        nothing = loop.run_until_complete(outcomes(server.address, worker, engines, texts))

    shown = [each.rows for each in seen[:8] if isinstance(each, SelectResult)]
    assert shown == [
        [("own-1",)], [("own-1", "g-own-1"), ("own-1", "s-own-1")], [("own-1",)], [("own-1", 1)],
        [("own-1", "b-own-1")],
        [("own-1", None, "broken"), (None, "own-1", "no use")], [(0,)], [(2,)],
    ]  # fmt: skip
    assert [type(each) for each in seen[8:]] == [NotFound] * 6
    # Told in the same words whether it is hidden or not there.
    assert str(seen[8]).replace("other", "nix") == str(seen[9])
    assert [each.rows for each in nothing[:6] if isinstance(each, SelectResult)] == [[]] * 6
    assert [type(each) for each in nothing[7:]] == [NotFound] * 7
