"""Credentials to callers, and what happens when the files change."""

import asyncio
import base64
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from queueber.auth.authenticator import Authenticator
from queueber.auth.callers import Caller
from queueber.auth.passwords import NOBODY
from queueber.auth.token_file import Entry
from queueber.auth.tokens import split_token
from queueber.clock import ManualClock
from queueber.errors import InvalidArgument, Unauthenticated, Unavailable
from queueber.limits import DAY_MS, HOUR_MS
from queueber.model import Credential, Grant, SessionTokens
from tests.support.callers import add_entry, add_token, add_user, remove_entries
from tests.support.web_tokens import AUDIENCE, ISSUER, claims, sign, write_key_file

WRONG = "the token, or the user and password, are not known here"
PHRASE = "correct horse battery staple"


@dataclass(frozen=True)
class Files:
    tokens_file: Path | None
    jwt_keys_file: Path | None = None
    jwt_audience: str = AUDIENCE
    jwt_issuer: str = ISSUER

    @property
    def data_dir(self) -> Path:
        file = self.tokens_file or self.jwt_keys_file
        assert file is not None
        return file.parent


class Rig:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.file = folder / "tokens.toml"
        self.token = add_token(self.file, "worker", queues=("ocr-*",))
        add_user(self.file, "alice", PHRASE)
        grants = (Grant("worker", ("*",), ()),)
        add_entry(self.file, Entry("machine", grants, certificate="m.example"))
        self.keys = write_key_file(folder / "keys.json")
        self.checked: list[object] = []
        self.authenticator = Authenticator(Files(self.file, self.keys), self.clock, self.run)

    async def run(self, work: Callable[[], bool]) -> bool:
        self.checked.append(work.args[0])  # type: ignore[attr-defined]  # a partial
        return False if work.args[0] is NOBODY else work()  # type: ignore[attr-defined]

    def caller(self, host: str = "h", **credential: str) -> Caller:
        return asyncio.run(self.authenticator.authenticate(Credential(**credential), host))

    def refusal(self, **credential: str) -> str:
        with pytest.raises(Unauthenticated) as caught:
            self.caller(**credential)
        return str(caught.value)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_each_kind_of_credential_is_a_caller(rig: Rig) -> None:
    assert rig.caller(token=rig.token).name == "worker"
    assert rig.caller(user="alice", password=PHRASE).name == "alice"
    assert rig.caller(token=sign(claims(rig.clock.now_ms()))).name == "somebody"
    by_certificate = rig.authenticator.by_certificate("m.example")
    assert by_certificate is not None
    assert by_certificate.name == "machine"


def test_a_token_is_the_same_caller_on_every_connection(rig: Rig) -> None:
    assert rig.caller(token=rig.token) is rig.caller(token=rig.token)


def test_every_guess_of_a_token_gets_the_same_answer(rig: Rig) -> None:
    token_id, secret = split_token(rig.token) or ("", "")
    guesses = [
        "", "x", token_id, secret, rig.token[:-1], rig.token + "x", rig.token + " ",
        f"qbr_{token_id}_", f"qbr_{token_id}_{secret[:-1]}", f"qbr_{token_id}_{secret}A",
        f"qbr_{token_id}_" + secret.swapcase(), f"qbr_{'0' * 12}_{secret}", f"qbr__{secret}",
        f"qbr_{token_id.upper()}_{secret}", f"QBR_{token_id}_{secret}", f"qbr_{token_id}_é",
        "\0" * 50, "ﬀ" * 50, "a" * (1 << 20), f"{rig.token}\0",
    ]  # fmt: skip

    for guess in guesses:
        assert rig.refusal(token=guess) == WRONG, guess


def test_hashes_of_the_file_are_no_credentials(rig: Rig) -> None:
    token_id, _ = split_token(rig.token) or ("", "")
    sha256 = next(line for line in rig.file.read_text().splitlines() if "sha256" in line)

    assert rig.refusal(token=f"qbr_{token_id}_{sha256.split()[-1]}") == WRONG


def test_an_unknown_user_costs_as_much_as_a_wrong_password(rig: Rig) -> None:
    assert rig.refusal(user="nobody", password=PHRASE) == WRONG
    assert rig.refusal(user="alice", password="wrong") == WRONG

    assert rig.checked[0] is NOBODY
    assert len(rig.checked) == 2


def test_a_token_or_certificate_is_no_user(rig: Rig) -> None:
    for name in ("worker", "machine", "m.example"):
        assert rig.refusal(user=name, password="") == WRONG
        assert rig.refusal(user=name, password=PHRASE) == WRONG


def test_a_credential_of_both_kinds_is_refused(rig: Rig) -> None:
    with pytest.raises(InvalidArgument, match="credential: has a token and a user"):
        rig.caller(token=rig.token, user="alice", password=PHRASE)


def test_a_password_that_is_too_long_is_not_hashed(rig: Rig) -> None:
    assert rig.refusal(user="alice", password="x" * 2000) == WRONG
    assert rig.checked == []


def test_after_some_wrong_passwords_the_right_one_must_wait_too(rig: Rig) -> None:
    for _ in range(5):
        rig.refusal(user="alice", password="wrong")

    with pytest.raises(Unavailable, match="too many wrong passwords for this user"):
        rig.caller(user="alice", password=PHRASE)

    assert rig.caller("elsewhere", user="alice", password=PHRASE).name == "alice"
    rig.clock.advance(6000)
    assert rig.caller(user="alice", password=PHRASE).name == "alice"


def test_wrong_passwords_of_others_lock_nobody_out_who_was_here_before(rig: Rig) -> None:
    """All callers of a gateway come from one address."""
    assert rig.caller(user="alice", password=PHRASE).name == "alice"
    for _ in range(5):
        assert rig.refusal(user="alice", password="wrong") == WRONG
    with pytest.raises(Unavailable):
        rig.caller(user="alice", password="wrong")
    checked = len(rig.checked)

    assert rig.caller(user="alice", password=PHRASE).name == "alice"
    assert len(rig.checked) == checked, "it takes no turn of those that are being checked"
    rig.authenticator.reload()
    assert rig.caller(user="alice", password=PHRASE).name == "alice"


def test_a_password_that_was_changed_is_not_known_any_more(rig: Rig) -> None:
    rig.caller(user="alice", password=PHRASE)
    remove_entries(rig.file, "alice")
    add_user(rig.file, "alice", PHRASE[::-1])
    rig.authenticator.reload()

    assert rig.refusal(user="alice", password=PHRASE) == WRONG
    assert rig.caller(user="alice", password=PHRASE[::-1]).name == "alice"
    remove_entries(rig.file, "alice")
    rig.authenticator.reload()
    assert rig.refusal(user="alice", password=PHRASE[::-1]) == WRONG


def test_a_credential_ends_at_its_time(rig: Rig) -> None:
    soon_ms = rig.clock.now_ms() // 1000 * 1000 + 5000
    token = add_token(rig.file, "reader", name="short", expires_at_ms=soon_ms)
    rig.authenticator.reload()
    assert rig.caller(token=token).expires_at_ms == soon_ms

    rig.clock.advance(5000)

    assert rig.refusal(token=token) == "the credential has expired; ask for a new one"
    assert rig.refusal(token=token[:-1]) == WRONG  # only who knows it learns that


def test_a_certificate_that_nobody_listed_is_nobody(rig: Rig) -> None:
    assert rig.authenticator.by_certificate("") is None
    assert rig.authenticator.by_certificate("other.example") is None
    assert rig.authenticator.by_certificate("machine") is None


# --- files that change ----------------------------------------------------------------------------


def test_a_reload_keeps_what_is_unchanged_and_ends_what_is_gone(rig: Rig) -> None:
    worker, alice = rig.caller(token=rig.token), rig.caller(user="alice", password=PHRASE)

    remove_entries(rig.file, "alice")
    rig.authenticator.reload()

    assert rig.authenticator.is_current(worker)
    assert not rig.authenticator.is_current(alice)
    assert rig.caller(token=rig.token) is worker
    assert rig.refusal(user="alice", password=PHRASE) == WRONG


def test_a_caller_whose_grants_changed_is_not_current(rig: Rig) -> None:
    worker = rig.caller(token=rig.token)

    rig.file.write_text(rig.file.read_text().replace("ocr-*", "*"))
    rig.authenticator.reload()

    assert not rig.authenticator.is_current(worker)
    assert rig.caller(token=rig.token).may("work", "queue", "anything")  # type: ignore[arg-type]


def test_a_web_token_is_current_as_long_as_its_key_is_there(rig: Rig) -> None:
    token = sign(claims(rig.clock.now_ms()))
    caller = rig.caller(token=token)

    rig.authenticator.reload()
    assert rig.authenticator.is_current(caller)
    write_key_file(rig.keys, "RS256")
    rig.authenticator.reload()

    assert not rig.authenticator.is_current(caller)
    assert rig.refusal(token=token) == "the token is not valid"


@pytest.mark.parametrize("which", ["file", "keys"])
def test_a_file_that_is_wrong_changes_nothing(which: str, rig: Rig) -> None:
    worker = rig.caller(token=rig.token)
    path: Path = getattr(rig, which)
    path.write_text("nonsense")

    with pytest.raises(InvalidArgument, match=r"cannot read|is not JSON"):
        rig.authenticator.reload()

    assert rig.authenticator.is_current(worker)
    assert rig.caller(token=rig.token) is worker


def test_web_tokens_alone_protect_a_server(rig: Rig) -> None:
    only = Authenticator(Files(None, rig.keys), rig.clock, rig.run)
    token = sign(claims(rig.clock.now_ms()))

    assert asyncio.run(only.authenticate(Credential(token), "h")).name == "somebody"
    with pytest.raises(Unauthenticated):
        asyncio.run(only.authenticate(Credential(rig.token), "h"))


def test_without_keys_a_web_token_is_only_a_wrong_token(rig: Rig) -> None:
    only = Authenticator(Files(rig.file), rig.clock, rig.run)

    with pytest.raises(Unauthenticated, match=WRONG):
        asyncio.run(only.authenticate(Credential(sign(claims(rig.clock.now_ms()))), "h"))


def test_credentials_show_nothing(rig: Rig) -> None:
    shown = repr(Credential(rig.token, "alice", PHRASE)) + str(Credential(rig.token))

    assert shown == "Credential()Credential()"


# --- tokens instead of a password -----------------------------------------------------------------


ODD = b'["access",[1],9,"x"]'


def issued(caller: Caller) -> SessionTokens:
    assert caller.issue is not None
    return caller.issue()


def test_a_password_is_exchanged_for_tokens(rig: Rig) -> None:
    alice = rig.caller(user="alice", password=PHRASE)

    tokens = issued(alice)
    by_token = rig.caller(token=tokens.access)

    assert (by_token.name, by_token.grants) == (alice.name, alice.grants)
    assert by_token.expires_at_ms == tokens.access_expires_at_ms == rig.clock.now_ms() + HOUR_MS
    assert by_token.issue is None, "it makes no further tokens"
    assert rig.authenticator.is_current(by_token)
    assert tokens.access not in repr(tokens)
    assert tokens.refresh not in repr(tokens)


def test_a_refresh_token_is_good_for_tokens_alone_and_ends_with_its_week(rig: Rig) -> None:
    tokens = issued(rig.caller(user="alice", password=PHRASE))
    rig.clock.advance(6 * DAY_MS)

    refreshed = rig.caller(token=tokens.refresh)
    new = issued(refreshed)

    assert (refreshed.name, refreshed.grants, refreshed.server_actions) == (
        "alice",
        (),
        frozenset(),
    )
    assert rig.caller(token=new.access).grants
    assert new.refresh_expires_at_ms == tokens.refresh_expires_at_ms
    rig.clock.advance(DAY_MS)
    assert rig.refusal(token=tokens.refresh) == "the token has expired; log in again"
    assert rig.refusal(token=new.refresh) == "the token has expired; log in again"


def test_tokens_outlive_a_restart_and_end_with_the_password(rig: Rig) -> None:
    tokens = issued(rig.caller(user="alice", password=PHRASE))
    again = Authenticator(Files(rig.file, rig.keys), rig.clock, rig.run)
    rig.authenticator = again
    known = rig.caller(token=tokens.access)

    remove_entries(rig.file, "alice")
    add_user(rig.file, "alice", PHRASE + "!")
    again.reload()

    assert not again.is_current(known)
    assert rig.refusal(token=tokens.access) == WRONG
    assert rig.refusal(token=tokens.refresh) == WRONG


def test_a_changed_token_and_one_of_another_server_are_wrong(rig: Rig, tmp_path: Path) -> None:
    tokens = issued(rig.caller(user="alice", password=PHRASE))
    prefix, payload, signature = tokens.access.split(".")
    other = _base64url(base64.urlsafe_b64decode(payload + "==").replace(b"access", b"refresh"))
    for wrong in (
        f"{prefix}.{other}.{signature}",
        f"{prefix}.{payload}.{signature[:-2]}AA",
        f"{prefix}.{payload}.",
        f"{prefix}.{payload}",
        "qbs.", "qbs..", "qbs.e30.e30", "qbs.bnVsbA.AAAA", "qbs.\N{BULLET}.x",
        f"{prefix}.{_base64url(b'[' * 900)}.AAAA",
        f"{prefix}.{_base64url(ODD)}.AAAA",
    ):  # fmt: skip
        assert rig.refusal(token=wrong) == WRONG

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tokens.toml").write_text(rig.file.read_text())
    rig.authenticator = Authenticator(Files(elsewhere / "tokens.toml"), rig.clock, rig.run)
    assert rig.refusal(token=tokens.access) == WRONG, "the token file alone signs nothing"


def test_only_the_server_may_read_its_key(rig: Rig) -> None:
    issued(rig.caller(user="alice", password=PHRASE))

    key = rig.file.with_name("session-key")

    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_bytes()) == 32


def test_tokens_and_certificates_get_no_tokens(rig: Rig) -> None:
    assert rig.caller(token=rig.token).issue is None
    machine = rig.authenticator.by_certificate("m.example")
    assert machine is not None
    assert machine.issue is None


def _base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
