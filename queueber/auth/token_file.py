"""The token file: who may connect, by token, by password or by certificate, and what each may do.

It is TOML with one `[[callers]]` table for each, and holds no secret: of tokens and passwords only
hashes. An entry has one of `id` with `sha256` (a token), `scrypt` (a password) and `certificate`.
"""

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from stat import S_IWOTH
from typing import Any

from queueber.auth.passwords import PasswordHash, read_hash
from queueber.auth.patterns import check_pattern
from queueber.auth.roles import ROLES
from queueber.errors import InvalidArgument
from queueber.limits import CALLER_NAME_BYTES_MAX, CALLERS_MAX, GRANTS_MAX, SECOND_MS
from queueber.model import Grant


@dataclass(frozen=True, slots=True)
class Entry:
    """One caller of the file."""

    name: str
    grants: tuple[Grant, ...]
    token_id: str = ""
    sha256: str = ""
    password: PasswordHash | None = None
    certificate: str = ""
    """The common name of a client's certificate."""
    created_at_ms: int = 0
    expires_at_ms: int = 0
    """0: never."""

    @property
    def kind(self) -> str:
        if self.certificate:
            return "certificate"
        return "token" if self.token_id else "user"

    @property
    def key(self) -> tuple[str, str]:
        """What an entry is found by. No two of a file have the same."""
        return self.kind, self.certificate or self.token_id or self.name


def read_token_file(file: Path) -> list[Entry]:
    """Raises `InvalidArgument`, which says which entry is wrong, and never shows a hash."""
    try:
        if file.stat().st_mode & S_IWOTH:
            raise InvalidArgument(f"{file}: everybody may write to it; make it 'chmod 600'")
        content = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InvalidArgument(f"cannot read {file}: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"cannot read {file}: {error}") from None
    return read_entries(content, str(file))


def read_entries(content: dict[str, Any], source: str) -> list[Entry]:
    if unknown := sorted(set(content) - {"callers"}):
        raise InvalidArgument(f"{source}: has {', '.join(unknown)}; known is [[callers]]")
    tables = content.get("callers", [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise InvalidArgument(f"{source}: callers are not written as [[callers]] tables")
    if len(tables) > CALLERS_MAX:
        raise InvalidArgument(f"{source}: has {len(tables)} callers; the limit is {CALLERS_MAX}")
    entries: list[Entry] = []
    known: set[tuple[str, str]] = set()
    for at, table in enumerate(tables, 1):
        try:
            entry = _read_entry(table)
            if entry.key in known:
                raise InvalidArgument(f"{' '.join(entry.key)} is there twice")
        except InvalidArgument as error:
            raise InvalidArgument(f"{source}: caller {at}: {error}") from None
        known.add(entry.key)
        entries.append(entry)
    return entries


_FIELDS = {
    "name", "id", "sha256", "scrypt", "certificate", "created", "expires", "grants", "role",
    "queues", "topics",
}  # fmt: skip


def _read_entry(table: dict[str, Any]) -> Entry:
    if unknown := sorted(set(table) - _FIELDS):
        raise InvalidArgument(f"{unknown[0]}: is not known; known are {', '.join(sorted(_FIELDS))}")
    ways = [way for way in ("id", "scrypt", "certificate") if way in table]
    if len(ways) != 1:
        raise InvalidArgument("give one of id (with sha256), scrypt and certificate")
    certificate = check_name(table["certificate"], "certificate") if "certificate" in table else ""
    return Entry(
        check_name(table.get("name", certificate), "name"),
        read_grants(table),
        token_id=_hex(table, "id") if "id" in table else "",
        sha256=_hex(table, "sha256", 64) if "id" in table else "",
        password=read_hash(table["scrypt"]) if "scrypt" in table else None,
        certificate=certificate,
        created_at_ms=_at_ms(table, "created"),
        expires_at_ms=_at_ms(table, "expires"),
    )


def check_name(name: object, field: str) -> str:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InvalidArgument(f"{field}: {name!r} is not a name of printable characters")
    if len(name.encode()) > CALLER_NAME_BYTES_MAX:
        raise InvalidArgument(f"{field}: is longer than {CALLER_NAME_BYTES_MAX} bytes, the limit")
    return name


def read_grants(table: dict[str, Any]) -> tuple[Grant, ...]:
    """Those of `grants`, or the one whose role, queues and topics the table itself has."""
    given = table.get("grants")
    if given is None:
        given = [{name: table[name] for name in ("role", "queues", "topics") if name in table}]
    elif table.keys() & {"role", "queues", "topics"}:
        raise InvalidArgument("grants: a role of its own is given, too; give one of the two")
    if not isinstance(given, list) or not 1 <= len(given) <= GRANTS_MAX:
        raise InvalidArgument(f"grants: give a list of 1 to {GRANTS_MAX}")
    return tuple(_read_grant(each) for each in given)


def _read_grant(table: object) -> Grant:
    if not isinstance(table, dict) or not table.keys() <= {"role", "queues", "topics"}:
        raise InvalidArgument("grants: a grant has a role, queues and topics, and nothing else")
    grant = Grant(
        check_role(table.get("role")),
        _read_patterns(table, "queues"),
        _read_patterns(table, "topics"),
    )
    if not grant.queues and not grant.topics:
        raise InvalidArgument("queues: name the queues or topics of the grant; '*' stands for all")
    return grant


def check_role(role: object) -> str:
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidArgument(f"role: {role!r} is none of {', '.join(ROLES)}")
    return role


def _read_patterns(table: dict[str, Any], field: str) -> tuple[str, ...]:
    patterns = table.get(field, [])
    if not isinstance(patterns, list) or len(patterns) > GRANTS_MAX:
        raise InvalidArgument(f"{field}: give a list of at most {GRANTS_MAX} patterns")
    return tuple(check_pattern(each, field) for each in patterns)


def _hex(table: dict[str, Any], field: str, length: int | None = None) -> str:
    text = table.get(field)
    try:
        is_hex = isinstance(text, str) and text == bytes.fromhex(text).hex() != ""
    except ValueError:
        is_hex = False
    if not is_hex or (length is not None and len(str(text)) != length):
        digits = f"{length} " if length else ""
        raise InvalidArgument(f"{field}: is not {digits}hexadecimal digits in lower case")
    return str(text)


def _at_ms(table: dict[str, Any], field: str) -> int:
    at = table.get(field)
    if at is None:
        return 0
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InvalidArgument(f"{field}: is not a time with its zone, such as 2030-01-31T12:00:00Z")
    return int(at.astimezone(UTC).timestamp() * SECOND_MS)
