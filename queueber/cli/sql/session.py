"""Runs texts of SQL against one server, and prints each answer as soon as it is there."""

from queueber import Client, clock
from queueber.cli.exits import Failure, failure_of
from queueber.cli.sql.answers import Printer
from queueber.client.transport.futures import wait_for
from queueber.errors import QueueberError
from queueber.limits import MIB
from queueber.model import StatementResult
from queueber.sql.bounds import Bounds
from queueber.sql.calling import begin_one
from queueber.sql.parser import parse
from queueber.sql.printer import printed
from queueber.sql.statements import Statement

_BOUNDS = Bounds(chars_max=4 * MIB, statements_max=100_000, seconds_max=600.0)
"""Its user's own time and memory."""
_SHOWN_MAX = 120


class Session:
    """A client, and where its answers go."""

    def __init__(self, client: Client, printer: Printer) -> None:
        self.client = client
        self.printer = printer

    def run(self, text: str) -> None:
        """Run all statements of a text; raises what ends it, with the statement in its message."""
        statements = parse(text, bounds=_BOUNDS)
        for number, statement in enumerate(statements, 1):
            begun = clock.seconds()
            try:
                result = self.ask(statement)
            except QueueberError as error:
                failure = failure_of(error)
                if len(statements) == 1:
                    raise failure from error
                shown = " ".join(printed(statement).split())[:_SHOWN_MAX]
                place = f"in statement {number} of {len(statements)}: {shown}"
                raise Failure(f"{failure.message}\n{place}", failure.exit_code) from error
            self.printer.show(result, clock.seconds() - begun)

    def ask(self, statement: Statement) -> StatementResult:
        """What one statement answers with; an interrupt ends it."""
        return wait_for(begin_one(self.client._connected(), statement, _BOUNDS))
