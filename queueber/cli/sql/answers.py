"""Answers of statements as tables, as JSON, or as comma-separated values."""

import base64
import csv
import io
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any

import click

from queueber.cli.output import counted, echo_json, echo_lines, text_to_line, to_line
from queueber.limits import SECOND_MS
from queueber.model import StatementResult

_WIDE = 10_000
"""Of what is printed into a pipe: no line is broken."""
_NUMBERS = ("INT", "DECIMAL", "DOUBLE", "FLOAT")


class Printer(ABC):
    @staticmethod
    def of(*, use_json: bool, use_csv: bool) -> "Printer":
        return JsonPrinter() if use_json else CsvPrinter() if use_csv else TablePrinter()

    @abstractmethod
    def show(self, result: StatementResult, seconds: float) -> None:
        """Print what one statement answered with."""


class TablePrinter(Printer):
    """For people; on a terminal with how long it took."""

    def show(self, result: StatementResult, seconds: float) -> None:
        took = f", {seconds * SECOND_MS:.1f} ms" if sys.stdout.isatty() else ""
        if result.columns:
            self._show_rows(result)
            click.echo(f"({counted(len(result.rows), 'row')}{took})")
        if result.message:
            click.echo(result.message)

    def _show_rows(self, result: StatementResult) -> None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in result.columns:
            is_number = any(word in column.type for word in _NUMBERS)
            table.add_column(
                Text(text_to_line(column.name), style="bold"),
                justify="right" if is_number else "left",
                overflow="fold",
                no_wrap=not sys.stdout.isatty(),
            )
        for row in result.rows:
            table.add_row(*(_cell(value) for value in row))
        if sys.stdout.isatty():
            Console(markup=False, emoji=False, highlight=False).print(table)
            return
        console = Console(file=io.StringIO(), width=_WIDE, markup=False, emoji=False)
        with console.capture() as captured:
            console.print(table)
        echo_lines(line.rstrip() for line in captured.get().splitlines())


class JsonPrinter(Printer):
    """One object for each row."""

    def show(self, result: StatementResult, seconds: float) -> None:
        names = [column.name for column in result.columns]
        for row in result.rows:
            echo_json(dict(zip(names, map(_to_json, row), strict=True)))
        if result.message:
            echo_json({"message": result.message})


class CsvPrinter(Printer):
    """A line with the names of columns, then one for each row; messages go to standard error."""

    def __init__(self) -> None:
        self._is_first = True

    def show(self, result: StatementResult, seconds: float) -> None:
        if result.message:
            click.echo(result.message, err=True)
        if not result.columns:
            return
        written = io.StringIO()
        if not self._is_first:
            written.write("\n")
        self._is_first = False
        lines = csv.writer(written, lineterminator="\n")
        lines.writerow([column.name for column in result.columns])
        lines.writerows([_to_csv(value) for value in row] for row in result.rows)
        click.echo(written.getvalue(), nl=False)


def _cell(value: Any) -> Any:
    from rich.text import Text

    match value:
        case None:
            return Text("NULL", style="dim")
        case bytes():
            return Text(to_line(value))
        case bool():
            return Text("true" if value else "false")
        case str():
            return Text(text_to_line(value))
        case datetime():
            return Text(value.isoformat(" ", "milliseconds"))
        case _:
            return Text(text_to_line(str(value)))


def _to_json(value: Any) -> Any:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case float() if not isfinite(value):  # no number of JSON
            return str(value)
        case list() | tuple():
            return [_to_json(each) for each in value]
        case dict():
            return {str(name): _to_json(each) for name, each in value.items()}
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def _to_csv(value: Any) -> Any:
    match value:
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return base64.b64encode(value).decode()
        case bool():
            return "true" if value else "false"
        case datetime() | date() | time():
            return value.isoformat()
        case Sequence() | dict() if not isinstance(value, str):
            return str(_to_json(value))
        case _:
            return value
