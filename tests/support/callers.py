"""Token files for tests, and the secrets of what is in them."""

from pathlib import Path

from queueber.auth.passwords import PasswordHash, _scrypt
from queueber.auth.token_file import Entry
from queueber.auth.token_writing import change_token_file
from queueber.auth.tokens import new_token
from queueber.model import Grant


def quick_hash(password: str) -> PasswordHash:
    """A hash that takes no time, for tests that are about something else."""
    cheap = PasswordHash(2, 1, 1, b"salt", bytes(32))
    return PasswordHash(2, 1, 1, b"salt", _scrypt(cheap, password))


def add_entry(file: Path, entry: Entry) -> None:
    change_token_file(file, lambda entries: [*entries, entry])


def add_token(
    file: Path,
    role: str,
    *,
    queues: tuple[str, ...] = ("*",),
    topics: tuple[str, ...] = ("*",),
    name: str = "",
    expires_at_ms: int = 0,
) -> str:
    """Add a token to the file; returns the token."""
    token, token_id, sha256 = new_token()
    grants = (Grant(role, queues, topics),)
    entry = Entry(name or role, grants, token_id, sha256, expires_at_ms=expires_at_ms)
    add_entry(file, entry)
    return token


def add_user(file: Path, name: str, password: str, role: str = "admin") -> None:
    grants = (Grant(role, ("*",), ("*",)),)
    add_entry(file, Entry(name, grants, password=quick_hash(password)))


def remove_entries(file: Path, name: str) -> None:
    change_token_file(file, lambda entries: [each for each in entries if each.name != name])
