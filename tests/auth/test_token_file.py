"""The token file: written, read, and what is said of a wrong one."""

import stat
import threading
from pathlib import Path

import pytest

from queueber.auth.token_file import Entry, read_token_file
from queueber.auth.token_writing import change_token_file
from queueber.auth.tokens import digest, new_token, split_token
from queueber.errors import InvalidArgument
from queueber.model import Grant
from tests.support.callers import add_entry, add_token, quick_hash

HASH = "0" * 64
GRANTS = (Grant("worker", ("ocr-*",), ()),)
TOKEN = f'[[callers]]\nname = "n"\nid = "ab"\nsha256 = "{HASH}"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.toml"


def test_every_kind_of_caller_is_written_and_read(file: Path) -> None:
    entries = [
        Entry("a", GRANTS, "0a1b", HASH, created_at_ms=1_000_000, expires_at_ms=2_000_000),
        Entry('b "x" \\ ü', (Grant("admin", ("*",), ("*",)),), password=quick_hash("p")),
        Entry("c", (*GRANTS, Grant("reader", ("a", "b*"), ("t",))), certificate="c.example"),
    ]

    for entry in entries:
        add_entry(file, entry)

    assert read_token_file(file) == entries


def test_the_file_is_for_its_owner_alone_and_has_no_secret(file: Path) -> None:
    token = add_token(file, "admin")
    _, secret = split_token(token) or ("", "")

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in file.read_text()
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_tokens_are_different_and_long_enough() -> None:
    made = {new_token()[0] for _ in range(100)}

    assert len(made) == 100
    for token in made:
        token_id, secret = split_token(token) or ("", "")
        assert (len(token_id), len(secret)) == (12, 43)


@pytest.mark.parametrize(
    "text", ["", "qbr", "qbr_", "qbr_a_", "qbr__x", "xyz_a_b", "qbr_ä_b", "a.b.c"]
)
def test_what_is_no_token_is_not_split(text: str) -> None:
    assert split_token(text) is None


def test_the_digest_is_that_of_the_whole_secret() -> None:
    assert digest("ab") != digest("a")
    assert len(digest("")) == 64


def test_changes_of_many_processes_are_all_kept(file: Path) -> None:
    threads = [
        threading.Thread(target=add_token, args=(file, "admin"), kwargs={"name": f"n{at}"})
        for at in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {each.name for each in read_token_file(file)} == {f"n{at}" for at in range(8)}


def test_a_caller_that_is_there_already_is_refused_and_nothing_changes(file: Path) -> None:
    entry = Entry("a", GRANTS, "0a1b", HASH)
    add_entry(file, entry)
    before = file.read_bytes()

    with pytest.raises(InvalidArgument, match="token 0a1b is there already"):
        add_entry(file, entry)

    assert file.read_bytes() == before


def test_a_folder_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"cannot write .*: No such file or directory"):
        change_token_file(tmp_path / "no" / "tokens.toml", lambda entries: entries)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x", "cannot read"),
        ("tokens = []", "has tokens; known is"),
        ("callers = 1", "not written as"),
        ("callers = [1]", "not written as"),
        (f'{TOKEN}role = "chief"\nqueues = ["*"]', "caller 1: role: 'chief' is none of producer"),
        (f'{TOKEN}queues = ["*"]', "caller 1: role: None is none of"),
        (f'{TOKEN}role = "admin"', "name the queues or topics"),
        (f'{TOKEN}role = "admin"\nqueues = "*"', "queues: give a list"),
        (f'{TOKEN}role = "admin"\nqueues = [1]', "queues: 1 is not a pattern"),
        (f'{TOKEN}role = "admin"\nqueue = ["*"]', "queue: is not known"),
        (f'{TOKEN}grants = []', "grants: give a list of 1"),
        (f'{TOKEN}grants = [1]', "a grant has a role"),
        (f'{TOKEN}role = "admin"\ngrants = [{{role = "admin"}}]', "give one of the two"),
        ('[[callers]]\nname = "n"\nrole = "admin"\nqueues = ["*"]', "give one of id"),
        (f'{TOKEN}certificate = "c"\nrole = "admin"\nqueues = ["*"]', "give one of id"),
        ('[[callers]]\nid = "ab"\nrole = "admin"\nqueues = ["*"]', "name: '' is not a name"),
        ('[[callers]]\nname = "n"\nid = "xy"\nrole = "admin"', "role|id|queues"),
        (f'{TOKEN}role = "admin"\nqueues = ["*"]\nexpires = 2030-01-01', "expires: is not a time"),
        (f'{TOKEN}role = "admin"\nqueues = ["*"]\nexpires = 2030-01-01T00:00:00', "is not a"),
        (
            f'{TOKEN}role = "admin"\nqueues = ["*"]\n{TOKEN}role = "admin"\nqueues = ["*"]',
            "caller 2: token ab is there twice",
        ),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_what_is_wrong(file: Path, text: str, told: str) -> None:
    file.write_text(text)

    with pytest.raises(InvalidArgument, match=told) as caught:
        read_token_file(file)

    assert str(file) in str(caught.value)
    assert HASH not in str(caught.value)


def test_a_file_that_everybody_may_write_is_refused(file: Path) -> None:
    file.write_text("")
    file.chmod(0o666)

    with pytest.raises(InvalidArgument, match="everybody may write to it"):
        read_token_file(file)


def test_a_file_that_is_missing_or_no_text_is_told(file: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"cannot read .*No such file"):
        read_token_file(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match=r"cannot read .*not text"):
        read_token_file(file)
