"""`queueber ping`: whether a server answers."""

import click
from click.exceptions import Exit

from queueber import clock
from queueber.cli.exits import NEGATIVE
from queueber.cli.output import to_duration
from queueber.cli.target import Target, server_flags
from queueber.limits import SECOND_MS


@click.command()
@server_flags
def ping(target: Target) -> None:
    """Ask a server for a sign of life.

    \b
    Examples:
      queueber ping
      queueber ping --connect-timeout 60 && queueber work package.module:function

    Prints how long the answer took once the connection was open, the version of the server and for
    how long it has run. Ends with 1 if the server answers but refuses writes, for example because
    its disk is full, and with 3 if it does not answer. With --json: {"milliseconds": 0.4,
    "version": "...", "upMs": 60000, "refusesWrites": null}.
    """
    with target.connect() as client:
        began = clock.seconds()
        server = client.server()
        took_ms = (clock.seconds() - began) * SECOND_MS
    up_ms = max(0, clock.SystemClock().now_ms() - server.started_at_ms)
    answer = {
        "milliseconds": round(took_ms, 2),
        "version": server.version,
        "upMs": up_ms,
        "refusesWrites": server.refuses_writes or None,
    }
    up = to_duration(up_ms // SECOND_MS * SECOND_MS)
    target.echo(
        answer,
        f"{target.address}  answered in {took_ms:.2f} ms: version {server.version}, up for {up}",
    )
    if server.refuses_writes:
        if not target.use_json:
            click.echo(f"It refuses writes: {server.refuses_writes}", err=True)
        raise Exit(NEGATIVE)
