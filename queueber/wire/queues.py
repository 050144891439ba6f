"""Codecs of settings, statistics and server information: messages to plain values and back."""

from typing import Any

from queueber.limits import BACKOFF_STEPS_MAX
from queueber.model import QueueSettings, ServerInfo, Stats
from queueber.wire.lists import Fields, read_list

_SETTINGS = Fields(QueueSettings, without=("backoff_ms", "isolation"))
_STATS = Fields(Stats, without=("settings",), leased="inProgress")
_SERVER_INFO = Fields(ServerInfo)


def read_settings(settings: Any) -> QueueSettings:
    backoff_ms = tuple(read_list("backoffMs", settings.backoffMs, BACKOFF_STEPS_MAX))
    isolation = not settings.noIsolation
    return QueueSettings(backoff_ms=backoff_ms, isolation=isolation, **_SETTINGS.read(settings))


def write_settings(target: Any, settings: QueueSettings) -> None:
    _SETTINGS.write(target, settings)
    target.backoffMs = list(settings.backoff_ms)
    target.noIsolation = not settings.isolation


def write_stats(target: Any, stats: Stats) -> None:
    write_settings(target.init("settings"), stats.settings)
    _STATS.write(target, stats)


def read_stats(source: Any) -> Stats:
    return Stats(settings=read_settings(source.settings), **_STATS.read(source))


def write_server_info(target: Any, info: ServerInfo) -> None:
    _SERVER_INFO.write(target, info)


def read_server_info(source: Any) -> ServerInfo:
    return ServerInfo(**_SERVER_INFO.read(source))
