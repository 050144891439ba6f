import json
import os
import re
import signal
from pathlib import Path

import pytest

import queueber
from queueber.testing import running_server
from tests.cli.conftest import ITEM_BYTES_MAX, Cli, read_terminal


def numbers(count: int) -> bytes:
    return b"".join(b"%d\n" % n for n in range(count))


def poll_all(queue: queueber.Queue) -> list[queueber.Item]:
    items: list[queueber.Item] = []
    while lease := queue.poll(1000):
        items += lease.items
    return items


def assert_untouched(queue: queueber.Queue) -> None:
    assert queue.stats().added_total == 0


def test_add_arguments_prints_ids_in_order(cli: Cli, queue: queueber.Queue) -> None:
    added = cli("add", "-q", queue.name, "one", "zwei und mehr", "")

    polled = queue.poll(10)
    assert added.code == 0
    assert added.stderr == ""
    assert added.stdout.splitlines() == [item.id.hex() for item in polled]
    assert [item.contents for item in polled] == [b"one", b"zwei und mehr", b""]


def test_add_argument_that_is_no_text_is_taken_as_it_is(cli: Cli, queue: queueber.Queue) -> None:
    added = cli.run("add", "-q", queue.name, os.fsdecode(b"\xff\xfe"))

    assert added.code == 0
    assert [item.contents for item in queue.poll()] == [b"\xff\xfe"]


def test_add_lines_in_bulk_keeps_their_order(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    """Calls overlap, and still the queue has the lines in the order of the file."""
    lines = tmp_path / "lines"
    lines.write_bytes(numbers(5000))

    added = cli.run("add", "-q", queue.name, "--lines", stdin=lines)

    polled = poll_all(queue)
    assert added.code == 0
    assert added.stderr == ""
    assert added.stdout.splitlines() == [item.id.hex() for item in polled]
    assert [item.contents for item in polled] == numbers(5000).split()


def test_add_lines_skips_empty_ones_and_needs_no_last_newline(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"\none\n\n  \n\r\nlast")

    added = cli.run("add", "-q", queue.name, "--lines", "--quiet", "first", stdin=lines)

    assert (added.code, added.stdout, added.stderr) == (0, "5\n", "")
    assert [i.contents for i in queue.poll(9)] == [b"first", b"one", b"  ", b"\r", b"last"]


def test_add_null_splits_at_nul_bytes_only(cli: Cli, queue: queueber.Queue, tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_bytes(b"a\nb\0\0c\0")

    added = cli.run("add", "-q", queue.name, "--null", "--quiet", "--json", stdin=names)

    assert (added.code, added.stdout, added.stderr) == (0, '{"added": 2}\n', "")
    assert [item.contents for item in queue.poll(9)] == [b"a\nb", b"c"]


def test_add_nothing_from_an_empty_stream_is_fine(cli: Cli, queue: queueber.Queue) -> None:
    added = cli.run("add", "-q", queue.name, "--lines", "--quiet")

    assert (added.code, added.stdout, added.stderr) == (0, "0\n", "")
    assert_untouched(queue)


def test_add_line_is_sent_before_the_stream_ends(cli: Cli, queue: queueber.Queue) -> None:
    """As in `tail -f log | queueber add --lines`; Ctrl-C ends it and says what is certain."""
    adding = cli.start("add", "-q", queue.name, "--lines")
    assert adding.stdin is not None
    assert adding.stdout is not None

    adding.stdin.write(b"first\n")
    adding.stdin.flush()
    first_id = adding.stdout.readline().decode().strip()
    adding.send_signal(signal.SIGINT)
    stdout, stderr = adding.communicate(timeout=30)

    assert [(item.id.hex(), item.contents) for item in queue.poll(9)] == [(first_id, b"first")]
    assert adding.returncode == 130
    assert (stdout, stderr) == (b"", b"Error: interrupted; 1 item was added\n")


def test_add_files_takes_each_whole(cli: Cli, queue: queueber.Queue, tmp_path: Path) -> None:
    picture, text = tmp_path / "picture", tmp_path / "text"
    picture.write_bytes(bytes(range(256)))
    text.write_bytes(b"two\nlines\n")

    added = cli("add", "-q", queue.name, "--file", str(picture), "--file", str(text), "--json")

    polled = queue.poll(9)
    assert added.code == 0
    assert [json.loads(line) for line in added.stdout.splitlines()] == [
        {"id": item.id.hex()} for item in polled
    ]
    assert [item.contents for item in polled] == [bytes(range(256)), b"two\nlines\n"]


def test_add_delay_hides_the_items(cli: Cli, queue: queueber.Queue) -> None:
    added = cli("add", "-q", queue.name, "--delay", "1000", "--quiet", "a", "b")

    assert (added.code, added.stdout) == (0, "2\n")
    assert (queue.stats().ready, queue.stats().delayed) == (0, 2)


def test_add_says_more_of_the_items(cli: Cli, queue: queueber.Queue) -> None:
    options = ["--priority", "9", "--attribute", "a=1=2", "--attribute", "b=", "--batch", "night"]

    urgent = cli("add", "-q", queue.name, "first", "second", *options)

    items = queue.peek().items
    assert (urgent.code, urgent.stderr) == (0, "")
    assert [(i.contents, i.priority) for i in items] == [(b"first", 9), (b"second", 9)]
    assert [dict(item.attributes) for item in items] == [{"a": "1=2", "b": ""}] * 2
    assert queue.receipt("night").added == 2


def test_add_counts_attributes_into_the_size_of_a_call(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    """All of them in one call would be over the limit of a message."""
    lines = tmp_path / "lines"
    lines.write_bytes(numbers(5000))
    attribute = f"long={'x' * 8000}"

    added = cli.run(
        "add", "-q", queue.name, "--lines", "--quiet", "--attribute", attribute, stdin=lines
    )

    assert (added.code, added.stdout, added.stderr) == (0, "5000\n", "")


def test_add_with_a_key_that_was_there_adds_nothing(cli: Cli, queue: queueber.Queue) -> None:
    first = cli("add", "-q", queue.name, "pay 17", "--key", "order-17")
    again = cli("add", "-q", queue.name, "pay 17", "--key", "order-17")
    as_json = cli("add", "-q", queue.name, "pay 17", "--key", "order-17", "--json")
    quiet = cli("add", "-q", queue.name, "pay 17", "--key", "order-17", "--quiet")
    count = cli("add", "-q", queue.name, "pay 17", "--key", "order-17", "--quiet", "--json")

    assert (first.code, first.stderr) == (0, "")
    assert (again.code, again.stdout) == (0, first.stdout)
    assert again.stderr == "Not added: 1 item whose key was used before.\n"
    assert json.loads(as_json.stdout) == {"id": first.stdout.strip(), "duplicate": True}
    assert (quiet.code, quiet.stdout) == (0, "0\n")
    assert json.loads(count.stdout) == {"added": 0, "duplicates": 1}
    assert queue.stats().added_total == 1


def test_add_that_fails_midway_says_how_many_were_added(
    cli: Cli, client: queueber.Client, tmp_path: Path
) -> None:
    client.create_queue("full-at-2500", items_max=2500)
    lines = tmp_path / "lines"
    lines.write_bytes(numbers(5000))

    added = cli.run("add", "-q", "full-at-2500", "--lines", stdin=lines)

    polled = poll_all(client.queue("full-at-2500"))
    assert added.code == 4
    assert added.stderr.startswith("Error: ")
    assert added.stderr.endswith("; 2,000 items were added\n")
    assert added.stdout.splitlines() == [item.id.hex() for item in polled]
    assert [item.contents for item in polled] == numbers(2000).split()


def test_add_while_the_server_is_killed_tells_what_is_certain(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(numbers(20_000))

    with running_server() as server, lines.open("rb") as stdin:
        adding = Cli(server.address).start("add", "--lines", stdin=stdin)
        assert adding.stdout is not None
        # Its ids do not fit into the pipe: as long as we read no more, it is not done.
        first_id = adding.stdout.readline()
        server.kill()
        server.start()
        rest = adding.stdout.read()
        _, stderr = adding.communicate(timeout=60)
        with queueber.connect(server.address) as client:
            stored = [item.id.hex() for item in poll_all(client.queue())]

    printed = (first_id + rest).decode().split()
    assert set(printed) <= set(stored)
    assert adding.returncode in {0, 4}
    if adding.returncode == 4:
        told = re.search(rb"; ([0-9,]+) items were added, and up to ([0-9,]+) more may", stderr)
        assert told is not None
        certain, unknown = (int(number.replace(b",", b"")) for number in told.groups())
        assert len(printed) == certain
        assert certain <= len(stored) <= certain + unknown
    else:
        assert stored == printed
        assert len(stored) == 20_000


@pytest.mark.parametrize("extra_bytes", [1, ITEM_BYTES_MAX, 10 * ITEM_BYTES_MAX])
def test_add_line_that_is_too_long_is_refused(
    cli: Cli, queue: queueber.Queue, tmp_path: Path, extra_bytes: int
) -> None:
    """Also when it is longer than what is read at once, and has no end."""
    lines = tmp_path / "lines"
    lines.write_bytes(b"x" * (ITEM_BYTES_MAX + extra_bytes))

    added = cli.run("add", "-q", queue.name, "--lines", stdin=lines)

    assert (added.code, added.stdout) == (4, "")
    assert str(ITEM_BYTES_MAX) in added.stderr
    assert added.stderr.endswith("; 0 items were added\n")
    assert_untouched(queue)


def test_add_file_that_is_too_long_is_refused(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (ITEM_BYTES_MAX + 1))

    added = cli("add", "-q", queue.name, "--file", str(file))

    assert (added.code, added.stdout) == (4, "")
    assert f"{file} has more than {ITEM_BYTES_MAX} bytes" in added.stderr
    assert_untouched(queue)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "there is nothing to add"),
        (["--lines", "--null"], "--lines and --null do not go together"),
        (["--lines", "--jsonl"], "--lines and --jsonl do not go together"),
        (["--priority", "10", "x"], "10 is not in the range 0<=x<=9"),
        (["--key", "", "x"], "--key is empty"),
        (["--key", "k", "x", "y"], "--key is for a single item"),
        (["--key", "k", "--lines"], "--key is for a single item"),
        (["--key", "k" * 513, "x"], "the limit is 512"),
        (["--attribute", "trace", "x"], "'trace' is not NAME=VALUE"),
        (["--attribute", "=1", "x"], "'=1' is not NAME=VALUE"),
        (["--batch", "", "x"], "batch: it is empty"),
        (["--epoch", "1", "x"], "give --producer, too"),
        (["--producer", "", "x"], "producer: it is empty"),
        (["--delay", "-1", "x"], "'-1' is not a number of seconds"),
        (["--delay", "nan", "x"], "'nan' is not a number of seconds"),
        (["--delay", "1e9", "x"], "'1e9' is too long; the limit is 31,622,400 seconds (366 d)"),
        (["--file", "/nowhere", "x"], "'/nowhere' does not exist"),
        (["--nonsense", "x"], "--nonsense"),
    ],
)
def test_add_with_wrong_usage_adds_nothing(
    cli: Cli, queue: queueber.Queue, arguments: list[str], told: str
) -> None:
    added = cli("add", "-q", queue.name, *arguments)

    assert (added.code, added.stdout) == (2, "")
    assert told in added.stderr
    assert_untouched(queue)


def test_add_to_a_queue_with_a_bad_name_is_wrong_usage(cli: Cli) -> None:
    added = cli("add", "-q", "no spaces", "x")

    assert (added.code, added.stdout) == (2, "")
    assert "'no spaces' is not a queue name" in added.stderr


def test_add_shows_progress_on_a_terminal_only(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(numbers(5000))
    terminal, terminal_end = os.openpty()

    with lines.open("rb") as stdin:
        adding = cli.start(
            "add", "-q", queue.name, "--lines", "--quiet", stdin=stdin, stderr=terminal_end
        )
        os.close(terminal_end)
        shown = read_terminal(terminal)
        stdout, _ = adding.communicate(timeout=30)

    assert (adding.returncode, stdout) == (0, b"5000\n")
    assert b"5,000 items" in shown
    assert b"/s" in shown
    assert b"23.9/23.9 kB" in shown


def test_add_ends_quietly_when_nobody_reads_the_ids(
    cli: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(numbers(5000))
    reading_end, writing_end = os.pipe()

    with lines.open("rb") as stdin:
        adding = cli.start("add", "-q", queue.name, "--lines", stdin=stdin, stdout=writing_end)
        os.close(writing_end)
        os.close(reading_end)
        _, stderr = adding.communicate(timeout=30)

    assert (adding.returncode, stderr) == (141, b"")


def test_add_gives_items_what_is_their_own(cli: Cli, queue: queueber.Queue, tmp_path: Path) -> None:
    lines = b'{"contents": "b", "attempts": 2, "backoff": [0], "timeout": 7}\n{"contents": "c"}\n'
    (tmp_path / "lines").write_bytes(lines)
    flags = ["--attempts", "1", "--backoff", "1,10", "--timeout", "30", "--expires", "600"]

    cli("add", "-q", queue.name, *flags, "a")
    with (tmp_path / "lines").open("rb") as stdin:
        added = cli("add", "-q", queue.name, "--jsonl", *flags, stdin=stdin)

    assert (added.code, added.stderr) == (0, "")
    lease = queue.poll(3)
    assert [item.timeout for item in lease] == [30, 7, 30]
    outcomes = [outcome.value for outcome in lease.fail("no")]
    assert outcomes == ["died", "retried", "died"]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--attempts", "1001"], "1001 is not in the range 0<=x<=1000"),
        (["--backoff", "1,x"], "'x' is not a number of seconds"),
        (["--timeout", "0"], "'0' is too short"),
        (["--expires", "soon"], "'soon' is not a number of seconds"),
        (["--expires", "2030-01-01"], "has no time zone"),
        (
            ["--expires", "5", "--delay", "10"],
            "--expires: an item that expires after 5 s has a delay of 10 s",
        ),
    ],
)
def test_add_refuses_wrong_options(
    cli: Cli, queue: queueber.Queue, flags: list[str], told: str
) -> None:
    added = cli("add", "-q", queue.name, *flags, "a")

    assert (added.code, queue.stats().added_total) == (2, 0)
    assert told in added.stderr.replace("\n", " ")
