"""What a new stream keeps and checks, by the headers of its PUT: profile, retention, compaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queueber.client import AsyncClient
from queueber.gateway.problems import invalid
from queueber.gateway.streams.extensions.profiles import (
    PROFILES,
    Profile,
    profile_of,
    type_of_profile,
)
from queueber.gateway.streams.extensions.schemas.documents import GENERIC, document_in_force
from queueber.gateway.streams.extensions.schemas.rules import Keyed, Rules, with_key
from queueber.limits import KEY_BYTES_MAX, RETENTION_MS_MAX, SECOND_MS
from queueber.model import TopicInfo, TopicSettings

RESERVED = ("_details", "_schema", "_profile", "_records")
"""Last segments of paths, which are about the stream whose path stands before them."""

_NUMBER_MAX = 2**53 - 1
_LIMITS = {
    b"stream-retention-seconds": ("retention_ms", SECOND_MS, RETENTION_MS_MAX // SECOND_MS),
    b"stream-retention-bytes": ("retention_bytes", 1, _NUMBER_MAX),
    b"stream-retention-messages": ("retention_messages", 1, _NUMBER_MAX),
}
_COMPACTION = b"stream-compaction"
_COMPARED = ("retention_ms", "retention_bytes", "retention_messages", "keeps_last_per_key")

Headers = Mapping[bytes, bytes]


def check_new_path(path: str) -> None:
    """Refuse a path that would be one of ours."""
    last = path.rpartition("/")[2]
    if last in RESERVED:
        raise invalid(f"path: its last part is {last}, which is reserved; choose another")


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a PUT asks for beyond the protocol."""

    profile: Profile
    content_type: str
    settings: Mapping[str, int | bool]
    key: str

    def arguments(self) -> dict[str, Any]:
        """As `create_topic` and `fork` take them."""
        given: dict[str, Any] = {name: value for name, value in self.settings.items() if value}
        if "retention_ms" in given:
            given["retention"] = given.pop("retention_ms") / SECOND_MS
        return given

    async def apply(self, payloads: Sequence[bytes]) -> Keyed:
        """The first content, checked; raises a `Problem` if it does not fit the profile."""
        document = self.profile.document
        if document is None or not payloads:
            return with_key(payloads, self.key)
        return await Rules(document).apply(payloads, self.key)

    async def is_met_by(self, client: AsyncClient, info: TopicInfo) -> bool:
        """Whether a stream that exists is as asked for."""
        has, wanted = info.config.settings, TopicSettings(**self.settings)  # type: ignore[arg-type]
        if any(getattr(has, name) != getattr(wanted, name) for name in _COMPARED):
            return False
        _, document = await document_in_force(client, info)
        return self.profile.name == (GENERIC if document is None else document.profile)


def keeping_of(headers: Headers, content_type: str, *, is_fork: bool) -> Keeping:
    """What the headers ask for; raises a `Problem` if they are wrong."""
    named = headers.get(b"stream-profile")
    profile = PROFILES[GENERIC] if named is None else profile_of(named.decode("latin-1"))
    if is_fork and profile.name != GENERIC:
        raise invalid("stream-profile: a fork has none; it begins with what its source has")
    settings: dict[str, int | bool] = dict(profile.settings)
    for header, (name, unit, limit) in _LIMITS.items():
        if header in headers:
            settings[name] = unit * _number(header, headers[header], limit)
    if _COMPACTION in headers:
        settings["keeps_last_per_key"] = _compaction(headers[_COMPACTION])
    limited = next((h for h, (name, _, _) in _LIMITS.items() if settings.get(name)), None)
    if settings.get("keeps_last_per_key") and limited:
        raise invalid(
            f"{limited.decode()}: the stream keeps the last message of each key, however old or "
            "many these are; leave it out, or Stream-Compaction"
        )
    return Keeping(
        profile, type_of_profile(profile, content_type), settings, key_of(headers, b"stream-key")
    )


def _number(header: bytes, value: bytes, limit: int) -> int:
    if not value.isdigit() or len(value) > 16 or not 1 <= int(value) <= limit:
        raise invalid(f"{header.decode()}: {value[:50]!r} is no number from 1 to {limit}")
    return int(value)


def _compaction(value: bytes) -> bool:
    if value.strip().lower() != b"key":
        raise invalid(f"stream-compaction: {value[:50]!r} is not possible; give key")
    return True


def key_of(headers: Headers, name: bytes = b"stream-key") -> str:
    """The key of what is appended; "": it has none."""
    given = headers.get(name, b"")
    try:
        key = given.decode()
    except UnicodeDecodeError:
        raise invalid("stream-key: it is not UTF-8") from None
    if len(given) > KEY_BYTES_MAX or not key.isprintable():
        raise invalid(
            f"stream-key: a key has 1 to {KEY_BYTES_MAX} bytes, all of which can be printed"
        )
    return key
