"""Codecs of settings, statistics and server information: messages to plain values and back."""

from collections.abc import Sequence
from typing import Any

from queueber.limits import BACKOFF_STEPS_MAX
from queueber.model import LeaseInfo, QueueSettings, ServerInfo, Stats
from queueber.wire.lists import Codec, read_list

_SETTINGS = Codec(QueueSettings, without=("backoff_ms", "isolation"))
_STATS = Codec(Stats, without=("settings",), leased="inProgress")
_SERVER_INFO = Codec(ServerInfo, without=("features",))
_LEASE = Codec(LeaseInfo, lease_id="lease")
write_lease, read_lease = _LEASE.write, _LEASE.read


def write_server_info(target: Any, server: ServerInfo) -> None:
    _SERVER_INFO.write(target, server)
    target.features = list(server.features)


def read_server_info(source: Any) -> ServerInfo:
    return _SERVER_INFO.read(source, features=tuple(source.features))


def read_settings(settings: Any) -> QueueSettings:
    backoff_ms = tuple(read_list("backoffMs", settings.backoffMs, BACKOFF_STEPS_MAX))
    return _SETTINGS.read(settings, backoff_ms=backoff_ms, isolation=not settings.noIsolation)


def write_settings(target: Any, settings: QueueSettings) -> None:
    _SETTINGS.write(target, settings)
    target.backoffMs = list(settings.backoff_ms)
    target.noIsolation = not settings.isolation


def write_stats(target: Any, stats: Stats) -> None:
    write_settings(target.init("settings"), stats.settings)
    _STATS.write(target, stats)


def read_stats(source: Any) -> Stats:
    return _STATS.read(source, settings=read_settings(source.settings))


def write_leases(results: Any, leases: Sequence[LeaseInfo], more: bool) -> None:
    results.more = more
    listed = results.init("leases", len(leases))
    for at, lease in enumerate(leases):
        write_lease(listed[at], lease)


def read_leases(results: Any) -> tuple[list[LeaseInfo], bool]:
    """A page of leases, and whether there are more."""
    return [read_lease(each) for each in results.leases], results.more
