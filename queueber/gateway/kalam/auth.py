"""Logging in as clients of KalamDB do: a password for tokens, and a token for new ones.

The server makes and checks the tokens, so the gateway keeps none. That is why a logout cannot end
one: it ends by itself within an hour, or with the user's password.
"""

from datetime import UTC, datetime
from typing import Annotated, cast

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.client import AsyncClient
from queueber.errors import FailedPrecondition, Unauthenticated
from queueber.gateway.calls import Call
from queueber.gateway.clients import ClientPool
from queueber.gateway.credentials import credential_of
from queueber.gateway.kalam.errors import kalam_error
from queueber.gateway.problems import Problem, invalid
from queueber.gateway.routes import NoQuery, Route
from queueber.limits import SECOND_MS
from queueber.model import CallerInfo, Credential, SessionTokens

_HOUR_SECONDS = 3600
_UNPROTECTED = "unprotected"
"""The token of a server that is not protected, which takes any."""

_RANKS = {"system": "system", "admin": "system", "dba": "dba", "user": "user", "producer": "user"}
"""Roles of ours as those of KalamDB; every other one is `service`."""
_ORDER = ("system", "dba", "service", "user")


class LoginRequest(msgspec.Struct):
    password: Annotated[str, Meta(min_length=1, max_length=1024)]
    user: Annotated[str, Meta(max_length=255)] | None = None
    username: Annotated[str, Meta(max_length=255)] | None = None
    """Another name of `user`; give one of them."""


class RefreshRequest(msgspec.Struct):
    refresh_token: str | None = None
    """Instead of it, the token may be in `Authorization: Bearer`."""


class KalamUser(msgspec.Struct):
    id: str
    role: str
    name: str | None
    email: str | None
    created_at: str
    updated_at: str


class LoginAnswer(msgspec.Struct):
    user: KalamUser
    admin_ui_access: bool
    expires_at: str
    access_token: str
    refresh_token: str
    refresh_expires_at: str


class MeAnswer(msgspec.Struct):
    user: KalamUser
    admin_ui_access: bool


class SetupStatus(msgspec.Struct):
    needs_setup: bool
    message: str


class Said(msgspec.Struct):
    message: str


async def log_in(call: Call[NoQuery, LoginRequest]) -> LoginAnswer:
    name = call.body.user or call.body.username
    if not name:
        raise invalid("body: user: it is missing; name the user")
    return await _tokens_for(call, Credential(user=name, password=call.body.password), name)


async def refresh(call: Call[NoQuery, RefreshRequest]) -> LoginAnswer:
    given = call.body.refresh_token
    credential = Credential(token=given) if given else credential_of(call.headers)
    if credential is None or not credential.token:
        raise Unauthenticated("refresh_token: it is missing; give the one that the login gave")
    return await _tokens_for(call, credential, "")


async def _tokens_for(
    call: Call[NoQuery, LoginRequest] | Call[NoQuery, RefreshRequest],
    credential: Credential,
    name: str,
) -> LoginAnswer:
    pool = cast(ClientPool, call.state["pool"])
    async with pool.client_for(credential) as client:
        who = await client.who_am_i()
        tokens = await _issued(client)
    return LoginAnswer(
        _user(who, name),
        _rank(who) in ("system", "dba"),
        _told(tokens.access_expires_at_ms),
        tokens.access,
        tokens.refresh,
        _told(tokens.refresh_expires_at_ms),
    )


async def _issued(client: AsyncClient) -> SessionTokens:
    try:
        return await client.issue_tokens()
    except FailedPrecondition:
        # The server is not protected. Its clients need something that looks like a token.
        end_ms = int((datetime.now(UTC).timestamp() + _HOUR_SECONDS) * SECOND_MS)
        return SessionTokens(_UNPROTECTED, end_ms, _UNPROTECTED, end_ms)


async def show_me(call: Call[NoQuery, None]) -> MeAnswer:
    who = await call.client.who_am_i()
    return MeAnswer(_user(who, ""), _rank(who) in ("system", "dba"))


async def log_out(call: Call[NoQuery, None]) -> Said:
    return Said("forget the tokens: they end by themselves")


async def show_status(call: Call[NoQuery, None]) -> SetupStatus:
    return SetupStatus(needs_setup=False, message="users are in the token file of the server")


async def set_up(call: Call[NoQuery, None]) -> Said:
    raise Problem(409, "ALREADY_EXISTS", "the server is set up; its token file has the users")


def _rank(who: CallerInfo) -> str:
    ranks = {_RANKS.get(grant.role, "service") for grant in who.grants}
    return next((each for each in _ORDER if each in ranks), "user")


def _user(who: CallerInfo, name: str) -> KalamUser:
    """Users of the token file have no address, and nobody may ask when they were written."""
    told = who.name or name or "anonymous"
    return KalamUser(told, _rank(who), told, None, _told(0), _told(0))


def _told(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms // SECOND_MS, UTC)
    return at.isoformat().replace("+00:00", "Z")


_USER_EXAMPLE = {
    "id": "ocr", "role": "service", "name": "ocr", "email": None,
    "created_at": "1970-01-01T00:00:00Z", "updated_at": "1970-01-01T00:00:00Z",
}  # fmt: skip
_LOGIN_EXAMPLE = {
    "user": _USER_EXAMPLE, "admin_ui_access": False, "expires_at": "2026-11-18T09:00:00Z",
    "access_token": "qbs.…", "refresh_token": "qbs.…",
    "refresh_expires_at": "2026-11-25T08:00:00Z",
}  # fmt: skip
_A = "/v1/api/auth"
_ERRORS = (errors.Unauthenticated, errors.PermissionDenied, errors.OutcomeUnknown)

ROUTES = (
    Route(
        "POST", f"{_A}/login", log_in, "Log in: a password for tokens, as KalamDB", "kalamdb",
        description="The access token is good for an hour as `Authorization: Bearer`.",
        body=LoginRequest, answer=LoginAnswer, uses_client=False, error_body=kalam_error,
        errors=_ERRORS, body_example={"user": "ocr", "password": "a long password"},
        answer_example=_LOGIN_EXAMPLE,
    ),
    Route(
        "POST", f"{_A}/refresh", refresh, "New tokens for a refresh token", "kalamdb",
        body=RefreshRequest, answer=LoginAnswer, uses_client=False, error_body=kalam_error,
        errors=_ERRORS, body_example={"refresh_token": "qbs.…"}, answer_example=_LOGIN_EXAMPLE,

    ),
    Route(
        "GET", f"{_A}/me", show_me, "Who the caller is, as KalamDB", "kalamdb",
        answer=MeAnswer, error_body=kalam_error,
        answer_example={"user": _USER_EXAMPLE, "admin_ui_access": False},
    ),
    Route(
        "POST", f"{_A}/logout", log_out, "Forget the tokens, as KalamDB", "kalamdb",
        answer=Said, uses_client=False, error_body=kalam_error, is_plain=True, takes_bytes=True,
        answer_example={"message": "forget the tokens: they end by themselves"},
    ),
    Route(
        "GET", f"{_A}/status", show_status, "Whether the server is set up", "kalamdb",
        answer=SetupStatus, uses_client=False, error_body=kalam_error,
        answer_example={
            "needs_setup": False, "message": "users are in the token file of the server",
        },
    ),
    Route(
        "POST", f"{_A}/setup", set_up, "Refused: the server is set up", "kalamdb",
        answer=Said, uses_client=False, error_body=kalam_error, errors=(errors.AlreadyExists,),
        answer_example={"message": ""}, is_plain=True, takes_bytes=True,
    ),
)  # fmt: skip
