import json
from pathlib import Path

import pytest

import queueber
from tests.cli.conftest import ITEM_BYTES_MAX, Cli


def add_lines(cli: Cli, folder: Path, lines: bytes, *arguments: str) -> tuple[int, str, str]:
    (folder / "lines").write_bytes(lines)
    with (folder / "lines").open("rb") as stdin:
        added = cli("add", "--jsonl", *arguments, stdin=stdin)
    return added.code, added.stdout, added.stderr


def test_jsonl_lines_say_what_they_like_and_options_the_rest(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    lines = (
        b'{"contents": "gr\xc3\xb6\xc3\x9fer", "key": "k", "attributes": {"b": "own"}}\n\n'
        b'{"contents": null, "contentsBase64": "/wA=", "priority": 1, "key": null}\n'
        b'{"contents": "later", "delay": 0}'
    )
    options = ["--priority", "7", "--attribute", "a=1", "--attribute", "b=2", "--batch", "night"]

    code, stdout, stderr = add_lines(
        cli, tmp_path, lines, "-q", queue.name, "--delay", "1000", "--quiet", *options
    )

    [ready] = queue.peek().items
    first, second = queue.peek("delayed").items
    assert (code, stdout, stderr) == (0, "3\n", "")
    assert (ready.contents, ready.priority) == (b"later", 7)
    assert (first.contents, first.priority, first.key) == ("größer".encode(), 7, "k")
    assert (second.contents, second.priority, second.key) == (b"\xff\x00", 1, "")
    assert (first.attributes, second.attributes) == ({"a": "1", "b": "own"}, {"a": "1", "b": "2"})
    assert queue.receipt("night").added == 3


def test_jsonl_takes_what_poll_prints(cli: Cli, queue: queueber.Queue, tmp_path: Path) -> None:
    queue.add([b"\xff", b"text"], attributes={"a": "1"}, batch="b")
    polled = json.loads(cli("poll", "-q", queue.name, "-n", "2", "--json").stdout)
    lines = "\n".join(map(json.dumps, polled["items"]))

    code, *_ = add_lines(cli, tmp_path, lines.encode(), "-q", queue.name)

    again = queue.poll(9)
    assert code == 0
    assert [item.contents for item in again] == [b"\xff", b"text"]
    assert [dict(item.attributes) for item in again] == [{"a": "1"}] * 2
    assert [item.batch for item in again] == [""] * 2


def test_jsonl_takes_what_peek_prints(cli: Cli, queue: queueber.Queue, tmp_path: Path) -> None:
    queue.add([b"a", b"b"], key=["k", None], priority=[9, 1])
    queue.poll().fail("once", delay=1000)
    peeked = [cli("peek", "-q", queue.name, "--json", "--state", s) for s in ("ready", "delayed")]
    lines = "".join(each.stdout for each in peeked).encode()

    code, *_ = add_lines(cli, tmp_path, lines, "-q", f"{queue.name}-copy")

    copied = json.loads(cli("peek", "-q", f"{queue.name}-copy", "--json").stdout.splitlines()[0])
    assert code == 0
    assert (copied["contents"], copied["key"], copied["priority"]) == ("a", "k", 9)
    assert (copied["attempts"], copied["lastError"]) == (0, None)


def test_jsonl_in_bulk_keeps_order_and_counts_duplicates(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    objects = [{"contents": str(n), "key": f"key-{n % 2500}"} for n in range(5000)]
    lines = "\n".join(map(json.dumps, objects)).encode()

    code, stdout, _ = add_lines(cli, tmp_path, lines, "-q", queue.name, "--quiet", "--json")

    assert code == 0
    assert json.loads(stdout) == {"added": 2500, "duplicates": 2500}
    assert [item.contents for item in queue.peek_all()] == [b"%d" % n for n in range(2500)]


def test_jsonl_item_of_the_largest_size_fits_however_it_is_escaped(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    line = json.dumps({"contents": "\0" * ITEM_BYTES_MAX}).encode()

    code, stdout, stderr = add_lines(cli, tmp_path, line, "-q", queue.name, "--quiet")

    assert (code, stdout, stderr) == (0, "1\n", "")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"nonsense", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b'{"contents": "\xff"}', "it is not JSON"),
        (b'["contents"]', "it is not a JSON object"),
        (b"{}", "it has no contents"),
        (b'{"contents": null}', "it has no contents"),
        (b'{"contents": 1}', "contents: it must be text, in quotes"),
        (b'{"contents": 1, "contentsBase64": "YQ=="}', "contents: it must be text"),
        (b'{"contents": "a", "contentsBase64": 1}', "contentsBase64: it must be text"),
        (b'{"contents": "a", "contentsBase64": "Yg=="}', "contents and contentsBase64 differ"),
        (b'{"contents": "a", "batch": "b"}', "'batch' is none of contents"),
        (b'{"contents": "a", "id": "00", "idd": 1}', "'idd' is none of contents"),
        (b'{"contents": "a", "delay": 1e9}', "delay: it is too long; the limit is 31,622,400"),
        (b'{"contents": "a", "delay": 1e12}', "delay: it is too long; the limit is 31,622,400"),
        (b'{"contents": "\\ud800"}', "not UTF-8 or base64"),
        (b'{"contentsBase64": "a"}', "not UTF-8 or base64"),
        (b'{"contents": "a", "prioritty": 1}', "'prioritty' is none of contents"),
        (b'{"contents": "a", "priority": 10}', "priority: 10 is not a number from 0 to 9"),
        (b'{"contents": "a", "delay": "soon"}', "delay: "),
        (b'{"contents": "a", "delay": NaN}', "delay: nan is not a number of seconds"),
        (b'{"contents": "a", "delay": [1]}', "delay: "),
        (b'{"contents": "a", "key": 17}', "key: "),
        (b'{"contents": "a", "key": ""}', "key: it is empty"),
        (b'{"contents": "a", "key": ["b"]}', "key: "),
        (b'{"contents": "a", "attributes": {"b": 1}}', "attributes: 1 is not text"),
        (b'{"contents": "a", "attributes": [{"b": "1"}]}', "attributes: "),
    ],
)
def test_jsonl_line_that_is_wrong_is_named(
    cli: Cli, queue: queueber.Queue, tmp_path: Path, line: bytes, told: str
) -> None:
    lines = b'{"contents": "fine"}\n' + line + b"\n"

    code, stdout, stderr = add_lines(cli, tmp_path, lines, "-q", queue.name)

    assert (code, stdout) == (2, "")
    assert stderr.startswith("Error: item 2 of standard input: ")
    assert told in stderr
    assert stderr.endswith("; 0 items were added\n")
    assert queue.stats().added_total == 0
