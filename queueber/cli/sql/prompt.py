"""The prompt of `queueber sql`: edits statements of several lines, completes them, runs them."""

from collections.abc import Iterable
from typing import Any

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from queueber.cli.exits import failure_of
from queueber.cli.sql.completion import Names, candidates
from queueber.cli.sql.history import open_history
from queueber.cli.sql.meta_commands import is_meta, meaning_of
from queueber.cli.sql.session import Session
from queueber.errors import QueueberError
from queueber.sql.errors import InvalidSql
from queueber.sql.parser import parse

_FRONT = "queueber> "
_FRONT_OF_MORE = "     ...> "
_WORD_END = " \t\n(),;=\"'`"


class SqlCompleter(Completer):
    """Offers what can come where the cursor is, and begins like the word before it."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        before = document.text_before_cursor
        begun = before[max(before.rfind(mark) for mark in _WORD_END) + 1 :]
        for each in candidates(before[: len(before) - len(begun)], self._names):
            if each.lower().startswith(begun.lower()) and each != begun:
                yield Completion(each, start_position=-len(begun))


class Prompt:
    """Asks for statements until its user ends it."""

    def __init__(self, session: Session, address: str, **of_toolkit: Any) -> None:
        """`of_toolkit`: input and output, for tests."""
        self._session = session
        self._toolkit: PromptSession[str] = PromptSession(
            message=_FRONT,
            history=open_history(),
            completer=SqlCompleter(Names(session.client)),
            complete_in_thread=True,
            complete_while_typing=True,
            multiline=True,
            prompt_continuation=_FRONT_OF_MORE,
            key_bindings=_bindings(),
            lexer=PygmentsLexer(SqlLexer),
            bottom_toolbar=FormattedText([("", f" {address}   help, \\q to end ")]),
            enable_history_search=True,
            **of_toolkit,
        )

    def run(self) -> None:
        while True:
            try:
                text = self._toolkit.prompt()
            except KeyboardInterrupt:
                continue  # what was typed is dropped
            except EOFError:
                return
            if text.strip() and not self._handle(text.strip()):
                return

    def _handle(self, text: str) -> bool:
        """Whether to go on."""
        if is_meta(text):
            meaning = meaning_of(text)
            if meaning.ends:
                return False
            if meaning.shown:
                click.echo(meaning.shown)
            text = meaning.sql
        if text:
            self._run(text)
        return True

    def _run(self, text: str) -> None:
        try:
            self._session.run(text)
        except KeyboardInterrupt:
            click.secho("interrupted", fg="yellow", err=True)
        except click.ClickException as failure:
            click.secho(failure.message, fg="red", err=True)
        except QueueberError as error:
            click.secho(failure_of(error).message, fg="red", err=True)


def is_complete(text: str) -> bool:
    """Whether Enter runs it: a command of the prompt, or what a semicolon ends."""
    stripped = text.strip()
    if not stripped or is_meta(stripped):
        return True
    if not stripped.endswith(";"):
        return False
    try:
        parse(stripped)
    except InvalidSql as error:
        return "has no end" not in error.sentence  # the semicolon is in a text
    except QueueberError:
        return True
    return True


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=~completion_is_selected)
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @bindings.add("enter", filter=completion_is_selected)
    def take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return bindings
