"""Who a client is to its server: a token, a user with a password, or nobody."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from queueber.errors import InvalidArgument
from queueber.limits import TOKEN_BYTES_MAX
from queueber.model import Credential

Token: TypeAlias = str | Callable[[], str]
"""A token, or a function that returns one. It is called, on a thread, for each new connection: so
it may fetch a token that has changed."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A token that is read from a file for each new connection, so that it may be replaced."""

    file: Path

    def __call__(self) -> str:
        try:
            with self.file.open("rb") as source:
                return source.read(TOKEN_BYTES_MAX + 1).decode()
        except OSError as error:
            raise InvalidArgument(f"token: cannot read {self.file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InvalidArgument(f"token: {self.file} is not text") from None


@dataclass(frozen=True, slots=True)
class Identity:
    """Its text shows no secret."""

    token: Token | None = field(default=None, repr=False)
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    async def credential(self) -> Credential | None:
        """What to send on a new connection; None: nothing."""
        if self.user:
            return Credential(user=self.user, password=self.password)
        if self.token is None:
            return None
        token = self.token
        if callable(token):
            token = await asyncio.get_running_loop().run_in_executor(None, token)
        return Credential(token=_check_token(token))


def _check_token(token: object) -> str:
    if not isinstance(token, str) or not token.strip():
        raise InvalidArgument("token: is not text, or is empty")
    if len(token) > TOKEN_BYTES_MAX:
        raise InvalidArgument(f"token: is longer than {TOKEN_BYTES_MAX} bytes, the limit")
    return token.strip()


NOBODY = Identity()


def to_identity(token: Token | None, user: str | None, password: str | None) -> Identity:
    """Check what a program gave. No error shows any of it."""
    if token is not None and (user or password):
        raise InvalidArgument("token: a user or password is given, too; give one of the two")
    texts = [each for each in (user, password) if each]
    if len(texts) == 1 or not all(isinstance(each, str) for each in texts):
        raise InvalidArgument("user: give a user and a password, both as text, or neither")
    if token is not None and not callable(token):
        token = _check_token(token)
    return Identity(token, user or "", password or "")
