"""`queueber schedule`: items that the server adds to queues at given times."""

from collections.abc import Mapping
from dataclasses import asdict
from zoneinfo import ZoneInfo

import click

from queueber.cli.flags import ListByDefault, count_flag, pairs_flag
from queueber.cli.output import item_to_json, options_to_add, to_camel_case, to_line, to_time_in
from queueber.cli.own_options import OwnFlags, own_options_flags
from queueber.cli.target import Target, queue_flags, server_flags
from queueber.limits import PRIORITY_DEFAULT, PRIORITY_MAX
from queueber.model import Missed, ScheduleInfo

_CONTENTS = {"contents", "contentsBase64"}
_NO_SCHEDULE = "there is no such schedule"


@click.group(cls=ListByDefault)
def schedule() -> None:
    """Have the server add items to queues at given times.

    \b
    Examples:
      queueber schedule add nightly '0 3 * * *' 'clean up' --zone Europe/Berlin
      queueber schedule add pulse '@every 30s' ping -q checks
      queueber schedule
      queueber schedule pause nightly
    """


@schedule.command()
@click.argument("name")
@click.argument("when")
@click.argument("contents", default="")
@click.option("--zone", default="UTC", show_default=True, help="Time zone, such as Europe/Berlin.")
@click.option(
    "--missed",
    type=click.Choice([each.value for each in Missed]),
    default=Missed.ONCE.value,
    show_default=True,
    help="What becomes of runs that were missed.",
)
@count_flag(
    "--priority",
    least=0,
    most=PRIORITY_MAX,
    default=PRIORITY_DEFAULT,
    help=f"0 to {PRIORITY_MAX}; polls take higher priorities first.",
)
@pairs_flag("--attribute", "attributes", help="Metadata of each item.")
@own_options_flags
@queue_flags
def add(
    target: Target,
    name: str,
    when: str,
    contents: str,
    zone: str,
    missed: str,
    priority: int,
    attributes: Mapping[str, str],
    own: OwnFlags,
) -> None:
    """Create a schedule, or change it.

    \b
    Examples:
      queueber schedule add nightly '0 3 * * *' 'clean up' --zone Europe/Berlin
      queueber schedule add reports '30 6 * * mon-fri' '{"kind": "report"}' -q reports
      queueber schedule add pulse '@every 30s' ping --missed skip --attempts 1 --expires 30

    WHEN has the five fields of cron: minute, hour, day of the month, month and day of the week. Or
    it is @hourly, @daily, @weekly, @monthly or @yearly, or @every with a duration such as 30s, 15m
    or 2h. CONTENTS are those of each item.

    If the server was stopped or the queue full, and a run is a minute late, it was missed: 'once'
    adds one item for all missed runs, 'skip' none, 'all' one for each of the last seven days.

    A name is used once in the whole server. With the same WHEN and --zone the next time of a
    schedule that exists stays. With --json: {"stored": "created"}, "changed" or "unchanged".
    """
    with target.connect() as client:
        stored = client.schedule(
            name,
            when,
            queue=target.queue,
            contents=contents.encode(),
            zone=zone,
            missed=missed,
            priority=priority,
            attributes=attributes,
            **own.given,
        )
        found = client.describe_schedule(name)
    target.echo({"stored": stored.value}, f"{name}  {stored.value}; {_next(found)}")


@schedule.command("list")
@server_flags
def list_schedules(target: Target) -> None:
    """Show all schedules, sorted by name.

    \b
    Example:
      queueber schedule list --json | jq .nextAtMs

    Times are those of the schedule's time zone.
    """
    with target.connect() as client:
        listed = client.schedules()
    headings = ("schedule", "when", "zone", "queue", "next", "last", "runs", "")
    target.echo_table(headings, map(_row, listed), *map(_without_contents, listed))


def _row(info: ScheduleInfo) -> tuple[str, ...]:
    times = (_time(info, each) for each in (info.next_at_ms, info.last_at_ms))
    word = "paused" if info.is_paused else info.problem
    return (info.name, info.when, info.zone, info.queue, *times, f"{info.runs:,}", word)


def _without_contents(info: ScheduleInfo) -> dict[str, object]:
    shown = _to_json(info)
    return {name: value for name, value in shown.items() if name not in _CONTENTS}


def _to_json(info: ScheduleInfo) -> dict[str, object]:
    """Among its fields what each item has of its own, by the names that `peek` has for it."""
    shown = item_to_json(info)
    del shown["options"]
    return shown | {to_camel_case(name): each for name, each in asdict(info.options).items()}


@schedule.command()
@click.argument("name")
@server_flags
def show(target: Target, name: str) -> None:
    """Show one schedule, with the contents of its items.

    \b
    Example:
      queueber schedule show nightly

    With --json: one object, with "contents" as text and "contentsBase64", and what each item has
    of its own: "attemptsMax" (null: as the queue says), "backoffMs", "timeoutMs", "expiresMs".
    """
    with target.connect() as client:
        found = client.describe_schedule(name)
    rows = [
        ("when", found.when),
        ("zone", found.zone),
        ("queue", found.queue),
        ("contents", to_line(found.contents)),
        *((f"attribute {key}", value) for key, value in found.attributes.items()),
        ("priority", str(found.priority)),
        ("of its own", options_to_add(found.options)),
        ("missed", found.missed.value),
        ("next", "paused" if found.is_paused else _time(found, found.next_at_ms)),
        ("last", _time(found, found.last_at_ms)),
        ("runs", f"{found.runs:,}"),
        ("problem", found.problem),
    ]
    target.echo_table((f"schedule {name}", ""), [row for row in rows if row[1]], _to_json(found))


@schedule.command()
@click.argument("name")
@server_flags
def pause(target: Target, name: str) -> None:
    """Stop a schedule until it is resumed.

    \b
    Example:
      queueber schedule pause nightly

    Ends with 1 if it was paused already. With --json: {"paused": true}.
    """
    with target.connect() as client:
        paused = client.pause_schedule(name)
    target.echo_done(name, "paused", "it was paused before", is_done=paused)


@schedule.command()
@click.argument("name")
@server_flags
def resume(target: Target, name: str) -> None:
    """Let a schedule run again, from its next time on.

    \b
    Example:
      queueber schedule resume nightly

    Runs whose time came during the pause are not made up for. Ends with 1 if it was not paused.
    With --json: {"resumed": true}.
    """
    with target.connect() as client:
        resumed = client.resume_schedule(name)
    target.echo_done(name, "resumed", "it was not paused", is_done=resumed)


@schedule.command()
@click.argument("name")
@server_flags
def run(target: Target, name: str) -> None:
    """Add the item of a schedule now, and print its id.

    \b
    Example:
      queueber schedule run nightly

    Its next time stays as it is, and it may be paused. With --json: {"id": "..."}.
    """
    with target.connect() as client:
        item_id = client.run_schedule(name)
    target.echo({"id": item_id.hex()}, item_id.hex())


@schedule.command()
@click.argument("name")
@server_flags
def remove(target: Target, name: str) -> None:
    """Remove a schedule. Items that it has added stay.

    \b
    Example:
      queueber schedule remove nightly

    Ends with 1 if there is no such schedule. With --json: {"removed": true}.
    """
    with target.connect() as client:
        removed = client.remove_schedule(name)
    target.echo_done(name, "removed", _NO_SCHEDULE, is_done=removed)


def _next(info: ScheduleInfo) -> str:
    return "paused" if info.is_paused else f"next {_time(info, info.next_at_ms)}"


def _time(info: ScheduleInfo, at_ms: int) -> str:
    return to_time_in(ZoneInfo(info.zone), at_ms) if at_ms else ""
