"""`queueber token`: who may connect to a protected server, and what each may do."""

import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

import click

from queueber.auth.passwords import new_hash
from queueber.auth.patterns import check_pattern
from queueber.auth.roles import ROLES
from queueber.auth.token_file import Entry, check_name, read_token_file
from queueber.auth.token_writing import change_token_file
from queueber.auth.tokens import new_token
from queueber.cli.durations import duration_ms
from queueber.cli.flags import F, ListByDefault
from queueber.cli.output import echo_json, echo_table, to_time
from queueber.clock import SystemClock
from queueber.errors import InvalidArgument, NotFound
from queueber.limits import SECOND_MS
from queueber.model import Grant

_file_flag = click.option(
    "--file",
    type=click.Path(path_type=Path),
    required=True,
    envvar="QUEUEBER_TOKENS_FILE",
    show_envvar=True,
    help="The token file, which the server has as --tokens-file.",
)
_json_flag = click.option("--json", "use_json", is_flag=True, help="Print JSON.")


def _grant_flags(command: F) -> F:
    flags = (
        click.option(
            "--role",
            "roles",
            type=click.Choice(list(ROLES)),
            multiple=True,
            required=True,
            help="What the caller may do. May be repeated.",
        ),
        click.option(
            "--queue",
            "queues",
            multiple=True,
            metavar="PATTERN",
            help="In which queues, as 'ocr-*'.",
        ),
        click.option(
            "--topic",
            "topics",
            multiple=True,
            metavar="PATTERN",
            help="In which topics, as 'log/*'.",
        ),
        click.option("--expires", type=duration_ms, help="After this time, such as 30d or 12h."),
    )
    for flag in reversed(flags):
        command = flag(command)
    return command


@click.group(cls=ListByDefault)
def token() -> None:
    """Say who may connect to a protected server.

    Tokens, users and certificates are in a file that holds only hashes.

    \b
    Examples:
      queueber token create --file tokens.toml --role worker --queue 'ocr-*' --expires 30d
      queueber token list --file tokens.toml
      queueber token revoke --file tokens.toml 0f8be52c90a1

    'queueber serve --tokens-file tokens.toml' asks callers for them. A running server reads the
    file again on SIGHUP.
    """


class _GrantOptions(TypedDict):
    """What the flags of `_grant_flags` give."""

    roles: tuple[str, ...]
    queues: tuple[str, ...]
    topics: tuple[str, ...]
    expires: int | None


def _entry(name: str, grant: _GrantOptions) -> Entry:
    """An entry without a secret so far."""
    queues, topics, expires = grant["queues"], grant["topics"], grant["expires"]
    if not queues and not topics:
        raise InvalidArgument(
            "--queue: name the queues or topics; for all of them give --queue '*' --topic '*'"
        )
    for pattern in queues:
        check_pattern(pattern, "--queue")
    for pattern in topics:
        check_pattern(pattern, "--topic")
    now_ms = SystemClock().now_ms() // SECOND_MS * SECOND_MS
    return Entry(
        check_name(name, "--name"),
        tuple(Grant(role, queues, topics) for role in dict.fromkeys(grant["roles"])),
        created_at_ms=now_ms,
        expires_at_ms=now_ms + expires if expires else 0,
    )


@token.command()
@click.option("--name", help="Who it is for, as logs show it.  [default: the roles, and a number]")
@_grant_flags
@_file_flag
@_json_flag
def create(
    file: Path,
    name: str | None,
    use_json: bool,
    **grant: Unpack[_GrantOptions],
) -> None:
    """Make a token, and print it. It is shown this once.

    \b
    Examples:
      queueber token create --file tokens.toml --role worker --queue 'ocr-*' --expires 30d
      queueber token create --file tokens.toml --name ci --role admin --queue '*' --topic '*'

    A program gives it to queueber.connect(token=...), a command finds it in QUEUEBER_TOKEN or in
    the file of --token-file. With --json: {"id": ..., "token": ...}.
    """
    made, token_id, sha256 = new_token()
    name = name or f"{'-'.join(grant['roles'])}-{secrets.token_hex(2)}"
    entry = replace(_entry(name, grant), token_id=token_id, sha256=sha256)
    change_token_file(file, lambda entries: [*entries, entry])
    if use_json:
        echo_json({"id": token_id, "name": name, "token": made})
    else:
        click.echo(made)
        click.echo(f"token {token_id} of {name!r} was added to {file}", err=True)


@token.command()
@click.argument("name")
@_grant_flags
@_file_flag
def user(file: Path, name: str, **grant: Unpack[_GrantOptions]) -> None:
    """Add a user with a password, or give one a new password and role.

    \b
    Example:
      queueber token user alice --file tokens.toml --role operator --queue '*' --topic '*'

    Asks for the password on the terminal; without one, reads a line from standard input.
    """
    if sys.stdin.isatty():
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\n")
    entry = replace(_entry(name, grant), password=new_hash(password))
    _put(file, entry)
    click.echo(f"user {name!r} is in {file}", err=True)


@token.command()
@click.argument("name")
@_grant_flags
@_file_flag
def certificate(file: Path, name: str, **grant: Unpack[_GrantOptions]) -> None:
    """Let in clients whose certificate has this common name, without a token.

    \b
    Example:
      queueber token certificate ocr-1.example --file tokens.toml --role worker --queue 'ocr-*'

    The server must verify the certificates of clients: see --tls-client-ca of 'queueber serve'.
    """
    entry = replace(_entry(name, grant), certificate=name)
    _put(file, entry)
    click.echo(f"certificate {name!r} is in {file}", err=True)


def _put(file: Path, entry: Entry) -> None:
    """Add the entry, or replace the one that is found by the same key."""

    def replaced(entries: list[Entry]) -> list[Entry]:
        return [*(each for each in entries if each.key != entry.key), entry]

    change_token_file(file, replaced)


@token.command("list")
@_file_flag
@_json_flag
def list_tokens(file: Path, use_json: bool) -> None:
    """Show who is in the file. Nothing of it is secret.

    \b
    Example:
      queueber token list --file tokens.toml
    """
    entries = read_token_file(file)
    if use_json:
        for entry in entries:
            echo_json(_as_json(entry))
        return
    headings = ("caller", "kind", "id", "role", "queues", "topics", "expires")
    echo_table(headings, map(_row, entries))


def _row(entry: Entry) -> tuple[str, ...]:
    grants = entry.grants
    return (
        entry.name,
        entry.kind,
        entry.token_id or entry.certificate,
        ", ".join(dict.fromkeys(grant.role for grant in grants)),
        ", ".join(dict.fromkeys(each for grant in grants for each in grant.queues)),
        ", ".join(dict.fromkeys(each for grant in grants for each in grant.topics)),
        _time(entry.expires_at_ms),
    )


def _time(at_ms: int) -> str:
    if not at_ms:
        return "never"
    return "expired" if at_ms <= SystemClock().now_ms() else to_time(at_ms)


def _as_json(entry: Entry) -> dict[str, object]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "id": entry.token_id or entry.certificate or None,
        "grants": [
            {"role": each.role, "queues": list(each.queues), "topics": list(each.topics)}
            for each in entry.grants
        ],
        "createdAtMs": entry.created_at_ms or None,
        "expiresAtMs": entry.expires_at_ms or None,
    }


@token.command()
@click.argument("caller", metavar="ID")
@_file_flag
def revoke(file: Path, caller: str) -> None:
    """Take a token, a user or a certificate out of the file.

    \b
    Example:
      queueber token revoke --file tokens.toml 0f8be52c90a1

    ID is that of a token, the name of a user, or that of a certificate. Send SIGHUP to the server:
    it then ends the connections of the caller.
    """

    def without(entries: list[Entry]) -> list[Entry]:
        left = [each for each in entries if each.key[1] != caller]
        if len(left) == len(entries):
            raise NotFound(f"{file} has no token, user or certificate {caller!r}")
        return left

    change_token_file(file, without)
    click.echo(f"{caller} is not in {file} any more; send SIGHUP to the server", err=True)
