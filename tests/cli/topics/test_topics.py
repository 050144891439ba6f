"""`queueber topics` and `queueber topic`, with a real server."""

import itertools
import json
import signal
import subprocess
import threading
import time
from typing import Any

import pytest

import queueber
from tests.cli.conftest import Cli, Outcome, rows_of

_numbers = itertools.count(1)


@pytest.fixture
def topic(client: queueber.Client) -> queueber.Topic:
    """A topic that no other test uses."""
    name = f"topic-{next(_numbers)}"
    client.create_topic(name)
    return client.topic(name)


def objects(outcome: Outcome) -> list[Any]:
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def test_what_is_published_is_read(cli: Cli, topic: queueber.Topic) -> None:
    told = cli("topic", "publish", topic.name, "a", "b", "--key", "k", "--attribute", "x=1")

    assert told == Outcome(0, "0/0\n0/1\n", "")
    read = cli("topic", "read", topic.name)
    assert read == Outcome(0, "0/0  a\n    key k, x=1\n0/1  b\n    key k, x=1\n", "")
    assert cli("topic", "read", topic.name, "--raw", "--last", "1").stdout == "b\n"


def test_lines_of_standard_input_are_messages(cli: Cli, topic: queueber.Topic) -> None:
    told = cli("topic", "publish", topic.name, "--lines", "--quiet", stdin="a\nb\n\nc")

    assert told == Outcome(0, "3\n", "")
    cli("topic", "publish", topic.name, "--lines", "--key-separator", ":", stdin="k:v\n")
    cli("topic", "publish", topic.name, "--null", stdin="d\ne\0")
    rows = [(m.payload, m.key) for m in topic.messages()]
    assert rows == [(b"a", ""), (b"b", ""), (b"c", ""), (b"v", "k"), (b"d\ne", "")]


def test_what_is_read_as_json_can_be_published(
    cli: Cli, client: queueber.Client, topic: queueber.Topic
) -> None:
    published = topic.publish(
        [queueber.NewMessage(b"a", "k", {"x": "1"}), queueber.NewMessage(b"\xff")]
    )

    read = cli("topic", "read", topic.name, "--json")
    told = cli("topic", "publish", f"{topic.name}-copy", "--jsonl", "--json", stdin=read.stdout)

    first, second = objects(read)
    assert first == {
        "partition": 0,
        "offset": 0,
        "payload": "a",
        "payloadBase64": "YQ==",
        "key": "k",
        "attributes": {"x": "1"},
        "id": published.ids[0].hex(),
        "timestampMs": published.at_ms,
        "sequence": published.sequences[0],
    }
    assert (second["payload"], second["payloadBase64"]) == (None, "/w==")
    assert [each["offset"] for each in objects(told)] == [0, 1]
    copy = [
        (m.payload, m.key, dict(m.attributes)) for m in client.topic(f"{topic.name}-copy").read()
    ]
    assert copy == [(b"a", "k", {"x": "1"}), (b"\xff", "", {})]


def test_a_read_begins_and_ends_where_it_is_told(cli: Cli, topic: queueber.Topic) -> None:
    topic.publish([b"%d" % n for n in range(10)])

    def read(*flags: str) -> str:
        return cli("topic", "read", topic.name, "--raw", *flags).stdout.replace("\n", "")

    assert read("--from", "7") == "789"
    assert read("--from", "2", "--until", "5") == "234"
    assert read("--limit", "2") == "01"
    assert read("--since", "3600", "--limit", "1") == "0"
    assert read("--from", "2020-01-01T00:00Z", "--limit", "3") == "012"
    assert read("--until", "2020-01-01T00:00Z") == ""


def test_nothing_to_read_is_exit_code_1(cli: Cli, topic: queueber.Topic) -> None:
    told = cli("topic", "read", topic.name)

    assert told == Outcome(1, "", f"There is no message in topic {topic.name!r} to read.\n")
    assert cli("topic", "read", topic.name, "--json") == Outcome(1, "", "")


def test_what_was_deleted_is_counted(cli: Cli, topic: queueber.Topic) -> None:
    topic.publish([b"a", b"b", b"c"])

    assert cli("topic", "trim", topic.name, "--to", "2", "--yes").stdout == (
        f"{topic.name}  2 messages deleted\n"
    )
    told = cli("topic", "read", topic.name, "--from", "0", "--raw")
    assert told == Outcome(0, "c\n", "Deleted: 2 earlier messages.\n")


def test_wrong_usage_is_exit_code_2_and_changes_nothing(cli: Cli, topic: queueber.Topic) -> None:
    for arguments, reason in (
        (["publish", topic.name], "there is nothing to publish"),
        (["publish", topic.name, "a", "--lines"], "as arguments or on standard input, not both"),
        (
            ["publish", topic.name, "a", "b", "--dedup-id", "d"],
            "--dedup-id is for a single",
        ),
        (["publish", topic.name, "a", "--partition", "256"], "256 is too many; the limit is 255"),
        (["publish", "a b", "x"], "'a b' is not the name of a topic"),
        (
            ["read", topic.name, "--from", "1", "--last", "1"],
            "--from and --last do not go",
        ),
        (["read", topic.name, "--from", "x"], "'x' is neither an offset, 'earliest', 'latest'"),
        (["trim", topic.name, "--yes"], "say which messages stay: --to, --last or --since"),
        (["reset", topic.name, "g"], "say where the group goes on: --to, --last or --since"),
        (["configure", topic.name], "there is nothing to change"),
        (["delete", topic.name], "there is no terminal to ask on; give --yes if you are sure"),
    ):
        told = cli("topic", *arguments)
        assert (told.code, told.stdout) == (2, "")
        assert reason in told.stderr
    broken = cli("topic", "publish", topic.name, "--jsonl", stdin="[]\n")
    assert (broken.code, topic.read().payloads) == (2, [])


def test_a_topic_that_is_not_there_is_not_created(cli: Cli, client: queueber.Client) -> None:
    for arguments in (
        ["read", "no"], ["describe", "no"], ["groups", "no"], ["close", "no"], ["fork", "no", "x"],
        ["trim", "no", "--to", "1", "--yes"], ["publish", "no", "x", "--must-exist"],
        ["reset", "no", "g", "--to", "1"], ["create-group", "no", "g"],
        ["tail", "no", "--must-exist"],
    ):  # fmt: skip
        told = cli("topic", *arguments)
        assert (told.code, told.stdout) == (4, "")
        assert told.stderr == "Error: there is no topic 'no'; create it, or check the name\n"
    assert "no" not in list(client.topics())


def test_topics_are_created_described_listed_and_deleted(cli: Cli) -> None:
    flags = ("--partitions", "2", "--retention", "3600", "--keeps-last-per-key")
    assert cli("topic", "create", "life/a", *flags).stdout == "life/a  created\n"
    assert objects(cli("topic", "create", "life/a", *flags, "--json")) == [{"created": False}]
    assert cli("topic", "create", "life/a").code == 4

    assert cli("topic", "configure", "life/a", "--ttl", "100").code == 0
    rows = rows_of(cli("topic", "describe", "life/a").stdout)
    assert (rows["retention"], rows["keeps last per key"], rows["time to live"]) == (
        "1 h", "yes", "100 s",
    )  # fmt: skip
    assert rows["partition 1"] == "offsets 0 to 0, 0 bytes"
    (told,) = objects(cli("topic", "describe", "life/a", "--json"))
    assert (told["name"], told["config"]["partitions"]) == ("life/a", 2)

    assert cli("topics", "life/").stdout == "life/a\n"
    assert objects(cli("topics", "life/", "--json")) == [{"name": "life/a"}]
    assert cli("topics", "life/", "--long").stdout.splitlines()[1].split()[:2] == ["life/a", "2"]
    assert cli("topic", "delete", "life/a", "--yes").stdout == "life/a  deleted\n"
    assert cli("topic", "delete", "life/a", "--yes").code == 1
    assert cli("topics", "life/") == Outcome(1, "", "")


def test_sources_are_added_shown_and_dropped(cli: Cli, client: queueber.Client) -> None:
    client.queue("sourced").add([b"a"])
    client.create_topic("events")
    added = ("topic", "add-source", "events", "sourced", "--on", "insert", "--where", "a = 1")
    assert cli(*added).stdout == "events  gets inserts of sourced\n"
    assert cli(*added).stdout == "events  gets inserts of sourced already\n"
    assert cli(*added, "--payload", "full").code == 4
    assert "ends too early" in cli(*added[:-1], "a =").stderr
    assert rows_of(cli("topic", "describe", "events").stdout)["source"] == (
        "sourced on insert where a = 1, key"
    )
    (told,) = objects(cli("topic", "describe", "events", "--json"))
    assert told["sources"] == [
        {"queue": "sourced", "on": "insert", "where": "a = 1", "partitionBy": "", "payload": "key"}
    ]

    dropped = ("topic", "drop-source", "events", "sourced")
    assert cli(*dropped).stdout == "events  1 source dropped\n"
    assert objects(cli(*dropped, "--json")) == [{"dropped": 0}]


def test_a_topic_is_closed_and_forked(
    cli: Cli, client: queueber.Client, topic: queueber.Topic
) -> None:
    topic.publish([b"a", b"b"])

    assert cli("topic", "fork", topic.name, f"{topic.name}-fork", "--offset", "1").code == 0
    assert cli("topic", "publish", topic.name, "c", "--close").stdout == "0/2\n"
    refused = cli("topic", "publish", topic.name, "d")
    assert (refused.code, refused.stdout) == (4, "")
    assert objects(cli("topic", "close", topic.name, "--json")) == [{"closed": True}]
    assert client.topic(f"{topic.name}-fork").read().payloads == [b"a"]


def test_groups_are_created_shown_reset_and_deleted(cli: Cli, topic: queueber.Topic) -> None:
    topic.publish([b"a", b"b", b"c"])

    assert cli("topic", "create-group", topic.name, "billing").stdout == "billing  created\n"
    flags = ("--kind", "shared", "--lease", "30", "--from", "latest")
    assert cli("topic", "create-group", topic.name, "mail", *flags).code == 0
    shown = cli("topic", "groups", topic.name).stdout.splitlines()
    assert [line.split()[:3] for line in shown[1:]] == [
        ["billing", "ordered", "3"], ["mail", "shared", "0"],
    ]  # fmt: skip

    assert cli("topic", "reset", topic.name, "billing", "--last", "1").stdout == "billing  reset\n"
    listed = objects(cli("topic", "groups", topic.name, "--json"))
    assert {each["name"]: each["cursors"] for each in listed} == {"billing": [2], "mail": [3]}
    assert listed[0]["settings"]["kind"] == "ordered"
    assert cli("topic", "delete-group", topic.name, "billing").code == 0
    assert cli("topic", "delete-group", topic.name, "billing").code == 1


def test_tail_ends_after_its_limit_or_with_the_topic(cli: Cli, topic: queueber.Topic) -> None:
    topic.publish([b"a", b"b", b"c"])

    first = cli("topic", "tail", topic.name, "--from", "earliest", "--limit", "2", "--raw")
    topic.close()
    rest = cli("topic", "tail", topic.name, "--last", "1", "--json")

    assert first == Outcome(0, "a\nb\n", "")
    assert [each["payload"] for each in objects(rest)] == ["c"]


@pytest.mark.parametrize("kind", ["ordered", "shared"])
def test_tail_with_a_group_acknowledges_what_it_printed(
    cli: Cli, topic: queueber.Topic, kind: str
) -> None:
    topic.publish([b"a", b"b", b"c"])
    flags = ("--group", "billing", "--kind", kind, "--raw")

    first = cli("topic", "tail", topic.name, *flags, "--limit", "2")
    second = cli("topic", "tail", topic.name, *flags, "--limit", "1")

    assert (first.stdout, second.stdout) == ("a\nb\n", "c\n")
    assert topic.describe_group("billing").lag == 0


def test_tail_begins_at_the_end_and_prints_what_is_published(
    cli: Cli, topic: queueber.Topic
) -> None:
    topic.publish(b"old")
    process = cli.start("topic", "tail", topic.name, "--raw", stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    is_there = threading.Event()

    def publish_until_it_is_there() -> None:
        while not is_there.wait(0.05):
            topic.publish(b"new")

    publishing = threading.Thread(target=publish_until_it_is_there)
    publishing.start()
    lines = [process.stdout.readline()]
    is_there.set()
    publishing.join()
    topic.publish(b"last")
    while lines[-1] != b"last\n":
        lines.append(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)

    assert process.returncode == 130
    assert set(lines) == {b"new\n", b"last\n"}


def test_groups_show_what_stops_a_bridge(
    cli: Cli, client: queueber.Client, topic: queueber.Topic
) -> None:
    queue = f"{topic.name}-queue"
    client.create_queue(queue, item_bytes_max=3)
    topic.create_group("bridge", kind="queue", queue=queue)
    topic.publish(b"long")
    reason = (
        f"message 0 of partition 0 of topic '{topic.name}' has 4 bytes; "
        f"item_bytes_max of queue '{queue}' is 3"
    )
    deadline = time.monotonic() + 10
    while topic.describe_group("bridge").stopped_by != reason:
        assert time.monotonic() < deadline
        time.sleep(0.02)

    assert reason in cli("topic", "groups", topic.name).stdout
    assert objects(cli("topic", "groups", topic.name, "--json"))[0]["stoppedBy"] == reason


def test_a_group_is_paused_and_resumed(cli: Cli, topic: queueber.Topic) -> None:
    topic.create_group("g")

    told = cli("topic", "pause-group", topic.name, "g", "--for", "600")

    assert told == Outcome(0, "g  paused for 10 min\n", "")
    assert objects(cli("topic", "groups", topic.name, "--json"))[0]["pausedUntilMs"] > 0
    assert "paused" in cli("topic", "groups", topic.name).stdout
    assert cli("topic", "resume-group", topic.name, "g") == Outcome(0, "g  resumed\n", "")
    assert topic.describe_group("g").paused_until_ms == 0
    told = cli("topic", "pause-group", topic.name, "g")
    assert told == Outcome(0, "g  paused until 'resume-group'\n", "")
    assert cli("topic", "resume-group", topic.name, "g", "--json").stdout == '{"paused": false}\n'
    refused = cli("topic", "pause-group", topic.name, "nobody")
    assert refused.code == 4
    assert "has no group 'nobody'" in refused.stderr


def test_a_producer_may_publish_its_lines_again(cli: Cli, topic: queueber.Topic) -> None:
    lines = "".join(f"line {number}\n" for number in range(2500))
    command = ("topic", "publish", topic.name, "--lines", "--quiet", "--producer", "night")

    assert cli(*command, stdin=lines) == Outcome(0, "2500\n", "")
    again = cli(*command, stdin=lines + "one more\n")

    # The third call has other messages than before, and the server refuses it.
    assert again.code == 4
    assert "--producer: sequence 3 of 'night' had 500 items, and has 501 now" in again.stderr
    again = cli(*command, "--json", stdin=lines)
    assert json.loads(again.stdout) == {"published": 0, "publishedBefore": 2500}
    told = cli(*command, "--epoch", "2", stdin="new\n")
    assert told == Outcome(0, "1\n", "")
    assert topic.describe().partitions[0].next_offset == 2501
    refused = cli("topic", "publish", topic.name, "x", "--epoch", "2")
    assert (refused.code, refused.stdout) == (2, "")
    assert "--epoch belongs to a producer" in refused.stderr


def test_what_a_producer_has_published_before_is_shown(cli: Cli, topic: queueber.Topic) -> None:
    command = ("topic", "publish", topic.name, "a", "b", "--producer", "p")
    cli(*command)

    again = cli(*command)

    assert again.stdout == "0/0  published before\n0/1  published before\n"
    assert again.stderr == "Not published again: 2 messages of an earlier run.\n"
