import json
import time
from pathlib import Path

import pytest

import queueber
from queueber.auth.passwords import is_password
from queueber.auth.token_file import read_token_file
from queueber.auth.tokens import digest, split_token
from queueber.limits import DAY_MS
from queueber.model import Grant
from queueber.testing import running_server
from tests.cli.conftest import Cli

WORKER = ("--role", "worker", "--queue", "ocr-*")
EVERYTHING = ("--queue", "*", "--topic", "*")
PHRASE = "correct horse battery staple"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.toml"


def test_create_prints_a_token_once_and_keeps_its_hash(file: Path) -> None:
    before_ms = time.time_ns() // 1_000_000 - 1000

    made = Cli()("token", "create", "--file", str(file), *WORKER, "--expires", "30d")

    token = made.stdout.strip()
    token_id, secret = split_token(token) or ("", "")
    (entry,) = read_token_file(file)
    assert (made.code, made.stdout) == (0, f"{token}\n")
    assert made.stderr == f"token {token_id} of {entry.name!r} was added to {file}\n"
    assert (entry.token_id, entry.sha256) == (token_id, digest(secret))
    assert entry.grants == (Grant("worker", ("ocr-*",), ()),)
    assert entry.name.startswith("worker-")
    assert before_ms <= entry.created_at_ms <= before_ms + 60_000
    assert entry.expires_at_ms == entry.created_at_ms + 30 * DAY_MS
    assert secret not in file.read_text()


def test_create_with_several_roles_and_a_name(file: Path) -> None:
    roles = ("--role", "producer", "--role", "reader", "--role", "reader")

    made = Cli()(
        "token", "create", "--file", str(file), "--name", "ci", *roles, "--topic", "a", "--json"
    )

    (entry,) = read_token_file(file)
    assert json.loads(made.stdout)["name"] == entry.name == "ci"
    assert json.loads(made.stdout)["id"] == entry.token_id
    assert entry.grants == (Grant("producer", (), ("a",)), Grant("reader", (), ("a",)))
    assert entry.expires_at_ms == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--role", "worker"), "for all of them give --queue '*' --topic '*'"),
        (("--queue", "*"), "Missing option '--role'"),
        (("--role", "chief", "--queue", "*"), "'chief' is not one of"),
        (
            (*WORKER, "--expires", "soon"),
            "'soon' is not a length of time such as 30s, 10min, 1h or 7d",
        ),
        ((*WORKER, "--expires", "0d"), "'0d' is not a length of time"),
        ((*WORKER, "--expires", "99999999w"), "is not a length of time"),
        ((*WORKER, "--name", "a\nb"), "--name: 'a\\nb' is not a name"),
        (("--role", "worker", "--queue", ""), "--queue: '' is not a pattern"),
    ],
)
def test_create_with_a_wrong_argument_writes_nothing(
    file: Path, arguments: tuple[str, ...], told: str
) -> None:
    made = Cli()("token", "create", "--file", str(file), *arguments)

    assert (made.code, made.stdout) == (2, "")
    assert told in made.stderr
    assert not file.exists()


def test_list_shows_every_caller_and_no_secret(file: Path) -> None:
    cli = Cli(environment={"QUEUEBER_TOKENS_FILE": str(file)})
    token = cli("token", "create", *WORKER, "--name", "ocr", "--expires", "1w").stdout.strip()
    cli("token", "user", "alice", "--role", "admin", *EVERYTHING, stdin=f"{PHRASE}\n")
    cli("token", "certificate", "m.example", "--role", "reader", *EVERYTHING)

    shown, as_json = cli("token"), cli("token", "list", "--json")

    rows = [line.split() for line in shown.stdout.splitlines()]
    token_id, _ = split_token(token) or ("", "")
    assert rows[1][:5] == ["ocr", "token", token_id, "worker", "ocr-*"]
    assert rows[2] == ["alice", "user", "admin", "*", "*", "never"]
    assert rows[3] == ["m.example", "certificate", "m.example", "reader", "*", "*", "never"]
    listed = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert [each["kind"] for each in listed] == ["token", "user", "certificate"]
    for entry in read_token_file(file):
        for hidden in (entry.sha256, str(entry.password)):
            assert not hidden or hidden == "None" or hidden not in shown.stdout + as_json.stdout


def test_a_user_gets_a_new_password_in_place_of_the_old_one(file: Path) -> None:
    command = ("token", "user", "alice", "--file", str(file), *EVERYTHING)
    Cli()(*command, "--role", "reader", stdin=f"{PHRASE}\n")
    changed = Cli()(*command, "--role", "admin", stdin=f"{PHRASE} 2\n")

    (entry,) = read_token_file(file)
    assert (changed.code, changed.stdout) == (0, "")
    assert entry.grants[0].role == "admin"
    assert entry.password is not None
    assert is_password(entry.password, f"{PHRASE} 2")


def test_a_password_that_is_too_short_is_refused(file: Path) -> None:
    told = Cli()(
        "token",
        "user",
        "alice",
        "--file",
        str(file),
        "--role",
        "admin",
        *EVERYTHING,
        stdin="short\n",
    )

    assert told.code == 2
    assert told.stderr == "Error: password: has 5 characters; give at least 12\n"
    assert not file.exists()


def test_revoke_takes_a_caller_out(file: Path) -> None:
    cli = Cli(environment={"QUEUEBER_TOKENS_FILE": str(file)})
    cli("token", "create", *WORKER, "--name", "stays")
    cli("token", "create", *WORKER, "--name", "goes")
    cli("token", "user", "alice", "--role", "admin", *EVERYTHING, stdin=f"{PHRASE}\n")
    goes = next(each for each in read_token_file(file) if each.name == "goes")

    revoked = [cli("token", "revoke", goes.token_id), cli("token", "revoke", "alice")]
    again = cli("token", "revoke", "alice")

    assert [each.code for each in revoked] == [0, 0]
    assert [each.name for each in read_token_file(file)] == ["stays"]
    assert again.code == 4
    assert again.stderr == f"Error: {file} has no token, user or certificate 'alice'\n"


def test_the_file_must_be_named_and_readable(file: Path) -> None:
    unnamed, missing = Cli()("token", "list"), Cli()("token", "list", "--file", str(file))

    assert "Missing option '--file'" in unnamed.stderr
    assert (missing.code, missing.stderr) == (
        2,
        f"Error: cannot read {file}: No such file or directory\n",
    )


# --- commands that talk to a protected server -----------------------------------------------------


def test_commands_find_their_token_in_the_environment_or_a_file(file: Path) -> None:
    admin = ("--role", "admin", *EVERYTHING)
    token = Cli()("token", "create", "--file", str(file), *admin).stdout
    token_file = file.with_name("token")
    token_file.write_text(token)
    with running_server("--tokens-file", str(file)) as server:
        by_variable = Cli(server.address, {"QUEUEBER_TOKEN": token.strip()})
        by_file = Cli(server.address, {"QUEUEBER_TOKEN_FILE": str(token_file)})
        without = Cli(server.address)("queues")
        missing = Cli(server.address)("queues", "--token-file", "/no/such/file")
        wrong = Cli(server.address, {"QUEUEBER_TOKEN": "nonsense"})("queues")

        assert by_variable("add", "x").code == 0
        assert by_file("queues").code == 0
        assert Cli(server.address)("queues", "--token-file", str(token_file)).code == 0
        # A flag overrides the environment.
        assert by_variable("queues", "--token-file", "/no/such/file").code == 2
        work = by_file("work", "json:loads", "--until", "empty", "--no-progress", "--json")
        assert json.loads(work.stdout)["failed"] == 1
        with queueber.connect(server.address, token=token) as client:
            assert client.queue("default").stats().ready == 0

    assert (without.code, missing.code, wrong.code) == (4, 2, 4)
    assert "authenticate first" in without.stderr
    assert missing.stderr == "Error: token: cannot read /no/such/file: No such file or directory\n"
    assert "nonsense" not in wrong.stderr
