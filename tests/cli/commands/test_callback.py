import json

import queueber
from tests.cli.conftest import Cli


def test_item_is_added_and_shown(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"x", batch="b")

    asked = cli("callback", "b", "report", "--attribute", "for=ops", "-q", queue.name)
    queue.poll().remove()
    (item,) = queue.poll(wait=10)
    shown = cli("callback", "b", "--show", "-q", queue.name)
    as_json = cli("callback", "b", "--show", "-q", queue.name, "--json")

    assert asked.stdout == f"b  an item will be added to {queue.name}\n"
    assert shown.stdout == f"b  item {item.id.hex()} was added to {queue.name}\n"
    assert json.loads(as_json.stdout)["itemId"] == item.id.hex()
    assert (item.contents, item.attributes["for"]) == (b"report", "ops")


def test_a_problem_is_shown(cli: Cli, client: queueber.Client, queue: queueber.Queue) -> None:
    client.configure_queue(queue.name, item_bytes_max=5)
    queue.add(b"x", batch="b")
    queue.poll().remove()
    refused = cli("callback", "b", "too large", "-q", queue.name)

    assert refused.code != 0
    assert "an item has 9 bytes; the limit of queue" in refused.stderr


def test_contents_or_show_must_be_given(cli: Cli, queue: queueber.Queue) -> None:
    for arguments in ((), ("report", "--show")):
        refused = cli("callback", "b", *arguments, "-q", queue.name)
        assert refused.code == 2
        assert "give the contents of the item, or --show" in refused.stderr


def test_items_that_wait_are_added_and_shown(cli: Cli, queue: queueber.Queue) -> None:
    (first,) = queue.add(b"first", batch="b")

    added = cli("add", "second", "--after", first.hex(), "-q", queue.name)
    cli("add", "third", "--after-batch", "b", "-q", queue.name)
    peeked = cli("peek", "--state", "delayed", "-q", queue.name)
    as_json = cli("peek", "--state", "delayed", "-q", queue.name, "--json", "--limit", "1")
    queue.poll().remove()

    assert f"after {first.hex()}" in peeked.stdout
    assert "after batch b" in peeked.stdout
    assert json.loads(as_json.stdout.splitlines()[0])["after"] == [first.hex()]
    assert added.stdout.strip() in {item.id.hex() for item in queue.poll(2, wait=10)}
