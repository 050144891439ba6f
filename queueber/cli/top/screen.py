"""The screen of `queueber top`: a line about the server, sums, queues and topics."""

from collections.abc import Iterable, Sequence

from rich.console import ConsoleDimensions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from queueber.cli.output import counted, text_to_line
from queueber.cli.top.looking import Picture, QueueLine, TopicLine
from queueber.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

_HEAD_LINES = 3
_TABLE_LINES = 2
"""The heading of a table, and what says how many rows are not shown."""
_THOUSAND, _MILLION, _BILLION = 10**4, 10**7, 10**10
_QUEUE_HEADINGS = (
    "queue", "ready", "leased", "delayed", "dead", "in/s", "done/s", "failed/s", "oldest", "polls",
)  # fmt: skip
_TOPIC_HEADINGS = ("topic", "messages", "bytes", "in/s", "groups", "lag", "behind")
_SORTED_BY = {"name": "queue", "in": "in/s", "done": "done/s", "failed": "failed/s"}


def whole(picture: Picture) -> RenderableType:
    """Everything, however long."""
    return _joined(picture, len(picture.queues), len(picture.topics))


def screen(picture: Picture, size: ConsoleDimensions) -> RenderableType:
    """As much as fits on the screen; topics get a third of it, if there are so many."""
    room = size.height - _HEAD_LINES - _TABLE_LINES
    topics = 0
    if picture.topics:
        topics = min(len(picture.topics), max(1, room // 3))
        room -= topics + _TABLE_LINES + 1
    return _joined(picture, max(0, room), topics, ("q", "end", "s", "sort"))


def _joined(picture: Picture, queues: int, topics: int, keys: Sequence[str] = ()) -> RenderableType:
    parts: list[RenderableType] = [_server_line(picture, keys), _sums(picture.queues), ""]
    parts.append(_queue_table(picture, queues))
    if (hidden := len(picture.queues) - queues) > 0:
        parts.append(Text(f"and {counted(hidden, 'queue')} more", style="dim"))
    if topics:
        parts += ["", _topic_table(picture.topics[:topics])]
        if len(picture.topics) > topics or picture.more_topics:
            parts.append(Text("and more topics", style="dim"))
    return Group(*parts)


# --- the head -------------------------------------------------------------------------------------


def _server_line(picture: Picture, keys: Sequence[str]) -> Text:
    server = picture.server
    line = Text("Queueber ", style="bold", no_wrap=True, overflow="ellipsis")
    line.append(f"{server.version}  {picture.address}", style="not bold")
    if server.started_at_ms:
        line.append(f"  up {to_age(picture.at_ms - server.started_at_ms)}", style="not bold")
    if server.refuses_writes:
        line.append(f"  refuses writes: {text_to_line(server.refuses_writes)}", style="bold red")
    for key, word in zip(keys[::2], keys[1::2], strict=True):
        line.append("  ")
        line.append(f"{key} ", style="bold cyan")
        line.append(word, style="not bold dim")
    return line


def _sums(queues: Iterable[QueueLine]) -> Text:
    lines = list(queues)
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(counted(len(lines), "queue"))
    for word in ("ready", "leased", "delayed", "dead"):
        number = sum(getattr(each, word) for each in lines)
        line.append(f"  {word} ", style="dim")
        line.append(f"{number:,}", style="bold red" if word == "dead" and number else "bold")
    for word, field in (("in/s", "in_per_s"), ("done/s", "done_per_s")):
        line.append(f"  {word} ", style="dim")
        line.append(to_rate(sum(getattr(each, field) for each in lines)), style="bold")
    return line


# --- tables ---------------------------------------------------------------------------------------


def _table(headings: Sequence[str], sorted_by: str = "") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=False)
    for at, heading in enumerate(headings):
        style = "bold reverse" if heading == sorted_by else ""
        table.add_column(
            Text(heading, style=style),
            justify="right" if at else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=8 if not at else None,
        )
    return table


def _queue_table(picture: Picture, rows: int) -> Table:
    table = _table(_QUEUE_HEADINGS, _SORTED_BY.get(picture.sort, picture.sort))
    for line in picture.queues[:rows]:
        name = Text(line.name)
        if line.paused:
            name.append(" paused", style="yellow")
        table.add_row(
            name,
            *(_number(each) for each in (line.ready, line.leased, line.delayed)),
            _number(line.dead, "red"),
            *(_rate(each) for each in (line.in_per_s, line.done_per_s)),
            _rate(line.failed_per_s, "red"),
            _dim_if_empty(to_age(line.oldest_ms) if line.oldest_ms else "-"),
            _number(line.waiting_polls),
        )
    return table


def _topic_table(topics: Iterable[TopicLine]) -> Table:
    table = _table(_TOPIC_HEADINGS)
    for line in topics:
        table.add_row(
            Text(line.name),
            _number(line.messages),
            Text(to_short(line.bytes)),
            _rate(line.in_per_s),
            _number(line.groups),
            _number(line.lag),
            _dim_if_empty(to_age(line.lag_ms) if line.lag_ms else "-"),
        )
    return table


def _number(number: int, style: str = "") -> Text:
    return Text(f"{number:,}", style=style if number else "dim")


def _rate(rate: float, style: str = "") -> Text:
    return Text(to_rate(rate), style=style if rate else "dim")


def _dim_if_empty(text: str) -> Text:
    return Text(text, style="dim" if text == "-" else "")


# --- numbers --------------------------------------------------------------------------------------


def to_rate(rate: float) -> str:
    return f"{rate:.1f}" if 0 < rate < 100 else to_short(round(rate))


def to_short(number: int) -> str:
    """With at most five digits: `9,999`, `123k`, `45M`."""
    for limit, unit, letter in (
        (_THOUSAND, 1, ""),
        (_MILLION, 10**3, "k"),
        (_BILLION, 10**6, "M"),
    ):
        if number < limit:
            return f"{number // unit:,}{letter}"
    return f"{number // 10**9:,}G"


def to_age(ms: int) -> str:
    """`0.5 s`, `12 s`, `3 min`, `5 h`, `2 d`."""
    if ms < 10 * SECOND_MS:
        return f"{max(0, ms) / SECOND_MS:.1f} s"
    for limit, unit, word in (
        (2 * MINUTE_MS, SECOND_MS, "s"),
        (2 * HOUR_MS, MINUTE_MS, "min"),
        (2 * DAY_MS, HOUR_MS, "h"),
    ):
        if ms < limit:
            return f"{ms // unit} {word}"
    return f"{ms // DAY_MS:,} d"
