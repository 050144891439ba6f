"""Passwords: hashed with scrypt, and checked in one way."""

import pytest

from queueber.auth.passwords import NOBODY, PasswordHash, is_password, new_hash, read_hash
from queueber.errors import InvalidArgument

PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="module")
def made() -> PasswordHash:
    return new_hash(PASSWORD)


def test_only_the_password_fits_its_hash(made: PasswordHash) -> None:
    assert is_password(made, PASSWORD)
    assert not is_password(made, PASSWORD + " ")
    assert not is_password(NOBODY, PASSWORD)


def test_a_hash_costs_what_owasp_recommends(made: PasswordHash) -> None:
    assert (made.cost, made.block_size, made.parallel) == (1 << 15, 8, 3)
    assert (NOBODY.cost, NOBODY.block_size, NOBODY.parallel) == (1 << 15, 8, 3)
    assert len(made.salt) == 16


def test_a_hash_is_written_and_read(made: PasswordHash) -> None:
    assert read_hash(str(made)) == made


@pytest.mark.parametrize("wrong", ["", "short", "x" * 11, "ü" * 513])
def test_a_password_of_a_wrong_length_is_refused_and_not_shown(wrong: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^password: ") as caught:
        new_hash(wrong)

    assert not wrong or wrong not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        "", "x", "1:2:3", "16384:8:1:zz:00", "0:8:1:00:" + "00" * 32, "3:8:1:00:" + "00" * 32,
        f"{1 << 30}:8:1:00:" + "00" * 32, "16384:999:1:00:" + "00" * 32,
        "16384:8:999:00:" + "00" * 32, "16384:8:1:00:00", 7, None,
    ],
)  # fmt: skip
def test_a_hash_that_is_wrong_or_too_costly_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match="scrypt: is not a hash"):
        read_hash(wrong)
