"""Passwords, kept as what scrypt makes of them.

A check takes a third of a second of one core on purpose, so it never runs on the server's thread.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from queueber.errors import InvalidArgument
from queueber.limits import MIB, PASSWORD_BYTES_MAX

_COST, _BLOCK_SIZE, _PARALLEL = 1 << 15, 8, 3
"""As OWASP recommends for scrypt with 32 MiB of memory."""
_COST_MAX = 1 << 17
_MEMORY_BYTES_MAX = 256 * MIB
_SALT_BYTES = 16
_HASH_BYTES = 32

PASSWORD_CHARACTERS_MIN = 12


@dataclass(frozen=True, slots=True)
class PasswordHash:
    cost: int
    block_size: int
    parallel: int
    salt: bytes
    hash: bytes

    def __str__(self) -> str:
        """As the token file has it."""
        numbers = f"{self.cost}:{self.block_size}:{self.parallel}"
        return f"{numbers}:{self.salt.hex()}:{self.hash.hex()}"


def new_hash(password: str) -> PasswordHash:
    """Raises `InvalidArgument` for a password that is too short or too long."""
    if len(password) < PASSWORD_CHARACTERS_MIN:
        raise InvalidArgument(
            f"password: has {len(password)} characters; give at least {PASSWORD_CHARACTERS_MIN}"
        )
    if len(password.encode()) > PASSWORD_BYTES_MAX:
        raise InvalidArgument(f"password: is longer than {PASSWORD_BYTES_MAX} bytes, the limit")
    salt = secrets.token_bytes(_SALT_BYTES)
    made = PasswordHash(_COST, _BLOCK_SIZE, _PARALLEL, salt, b"")
    return PasswordHash(_COST, _BLOCK_SIZE, _PARALLEL, salt, _scrypt(made, password))


def is_password(known: PasswordHash, password: str) -> bool:
    """Takes the same time for every password."""
    return hmac.compare_digest(_scrypt(known, password), known.hash)


def read_hash(text: object) -> PasswordHash:
    """The hash of a token file. Numbers that would take too much time or memory are refused."""
    parts = str(text).split(":")
    try:
        cost, block_size, parallel = (int(each) for each in parts[:3])
        salt, digest = (bytes.fromhex(each) for each in parts[3:])
    except ValueError:
        raise InvalidArgument("scrypt: is not a hash that 'queueber token user' wrote") from None
    is_cost = 2 <= cost <= _COST_MAX and cost & (cost - 1) == 0
    if not (is_cost and 1 <= block_size <= 16 and 1 <= parallel <= 16 and len(digest) >= 16):
        raise InvalidArgument("scrypt: is not a hash that 'queueber token user' wrote")
    return PasswordHash(cost, block_size, parallel, salt, digest)


def _scrypt(known: PasswordHash, password: str) -> bytes:
    return hashlib.scrypt(
        password.encode(),
        salt=known.salt,
        n=known.cost,
        r=known.block_size,
        p=known.parallel,
        maxmem=_MEMORY_BYTES_MAX,
        dklen=len(known.hash) or _HASH_BYTES,
    )


NOBODY = PasswordHash(_COST, _BLOCK_SIZE, _PARALLEL, bytes(_SALT_BYTES), bytes(_HASH_BYTES))
"""Checked for a user that does not exist, so that this takes as long."""
