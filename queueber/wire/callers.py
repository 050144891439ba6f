"""Codecs of callers: their credentials, and who they are."""

from typing import Any

from queueber.model import CallerInfo, Credential, Grant, SessionTokens


def read_credential(source: Any) -> Credential:
    return Credential(source.token, source.user, source.password)


def write_credential(target: Any, credential: Credential) -> None:
    target.token = credential.token
    target.user = credential.user
    target.password = credential.password


def write_caller(target: Any, caller: CallerInfo) -> None:
    target.name = caller.name
    target.expiresAtMs = caller.expires_at_ms
    grants = target.init("grants", len(caller.grants))
    for at, grant in enumerate(caller.grants):
        grants[at].role = grant.role
        grants[at].queues = list(grant.queues)
        grants[at].topics = list(grant.topics)


def read_caller(source: Any) -> CallerInfo:
    return CallerInfo(
        source.name,
        tuple(Grant(each.role, tuple(each.queues), tuple(each.topics)) for each in source.grants),
        source.expiresAtMs,
    )


def write_tokens(target: Any, tokens: SessionTokens) -> None:
    target.access = tokens.access
    target.accessExpiresAtMs = tokens.access_expires_at_ms
    target.refresh = tokens.refresh
    target.refreshExpiresAtMs = tokens.refresh_expires_at_ms


def read_tokens(source: Any) -> SessionTokens:
    return SessionTokens(
        source.access, source.accessExpiresAtMs, source.refresh, source.refreshExpiresAtMs
    )
