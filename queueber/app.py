"""The composition root: builds all objects of a server, runs them, and stops them in order."""

import errno
import resource
import socket
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import structlog
import trio

from queueber.beside import gateway_beside
from queueber.clock import MovedClock, SystemClock, seconds
from queueber.config import Config, split_address
from queueber.db.recovery.opening import check_data_dir
from queueber.db.store.options import OPEN_FILES_MAX
from queueber.db.store.rocks import RocksStore
from queueber.engine.open import open_engine
from queueber.errors import QueueberError
from queueber.ids import IdSource
from queueber.memory import collect_seldom, keep_freed_memory
from queueber.model import Feature, ServerInfo
from queueber.reloads import Reloads
from queueber.rpc.callers import Callers
from queueber.rpc.handshakes import HANDSHAKES_MAX
from queueber.rpc.kj_bridge import Bridge, run
from queueber.rpc.server import REFUSED_MAX, RpcServer
from queueber.service.commit_group import CommitGroup
from queueber.service.measures.store import store_families
from queueber.service.service import Service
from queueber.service.session import Admission, Session
from queueber.service.shell import ServiceLimits, Shell
from queueber.service.unread_answers import AnswerBudget
from queueber.sweeper.loops import Reclaimer, Sampler, Sweeper, Syncer
from queueber.tls import ServerTls
from queueber.version import VERSION

_log = structlog.get_logger("queueber")

_FLUSH_SECONDS = 0.05
"""How long a shutdown waits for the last answers to leave their sockets."""

_LISTEN_ERRORS = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES, errno.EPERM)

_OTHER_FILES = 100
"""Open files beside those of connections and of the store: log, loop, standard streams."""


class _Stop:
    """A request to stop the server, and its reason."""

    def __init__(self) -> None:
        self._requested = trio.Event()
        self.reason = ""
        self.failure: BaseException | None = None

    def request(self, reason: str, failure: BaseException | None = None) -> None:
        self.reason = self.reason or reason
        self.failure = self.failure or failure
        self._requested.set()

    async def wait_requested(self) -> None:
        await self._requested.wait()


def serve(
    config: Config,
    *,
    address_file: Path | None = None,
    http_address_file: Path | None = None,
    clock: MovedClock | None = None,
) -> None:
    """Run a server until SIGTERM or SIGINT. Only tests of other programs give it a clock.

    If a failure stops it, raises that failure; the server acknowledges nothing after it. If the
    server cannot start, the `QueueberError` says what to change.
    """
    keep_freed_memory()
    collect_seldom()
    # If a connection ends before the coroutine of its call starts, no one awaits that coroutine.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    try:
        run(partial(_serve, config, address_file, http_address_file, clock))
    except Exception as error:
        raise _explained(error, config) from error


def _explained(error: Exception, config: Config) -> Exception:
    # trio wraps it in exception groups.
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    match error:
        case OSError(filename=str() | Path() as file):
            return QueueberError(f"cannot use {file}: {error.strerror}")
        case OSError() if isinstance(error, socket.gaierror) or error.errno in _LISTEN_ERRORS:
            # For an address in use, asyncio replaces strerror with a sentence of its own.
            is_in_use = error.errno == errno.EADDRINUSE
            reason = (
                "the address is in use" if is_in_use else (error.strerror or str(error)).lower()
            )
            return QueueberError(
                f"cannot listen on {config.listen}: {reason}; choose another with --listen"
            )
    return error


def _allowed_connections(config: Config) -> int:
    """Raise the soft limit of open files, often 1,024; return how many connections it allows."""
    others = OPEN_FILES_MAX + REFUSED_MAX + HANDSHAKES_MAX + _OTHER_FILES
    wanted = config.connections_max + others
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= wanted:
        return config.connections_max
    allowed = wanted if hard == unlimited else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        # Connections must not use up the files that the store needs.
        connections = max(1, allowed - others)
        _log.warning("open_files_limited", allowed=allowed, wanted=wanted, connections=connections)
        return connections
    return config.connections_max


async def _serve(
    config: Config,
    address_file: Path | None,
    http_address_file: Path | None,
    moved_clock: MovedClock | None,
    bridge: Bridge,
) -> None:
    _log.info("starting", version=VERSION, **config.shown())
    check_data_dir(config.data_dir)
    config.data_dir.mkdir(parents=True, exist_ok=True)
    stop = _Stop()
    bridge.on_signals(stop.request)
    on_reload = Reloads()
    bridge.on_hangup(on_reload.run)
    tls = _server_tls(config, on_reload)
    on_crash = _crash_reporter(bridge, stop)
    with RocksStore(config.data_dir) as store:
        if store.torn:
            _log.warning("torn_log", reason=store.torn)
        commits = CommitGroup(bridge.loop, store.sync, on_failure=on_crash, seconds=seconds)
        # One thread: what runs there reads whole files, and two of them would only share the disk.
        background = ThreadPoolExecutor(1, "queueber-background")
        try:
            await _run_server(
                config,
                address_file,
                http_address_file,
                moved_clock,
                bridge,
                stop,
                store,
                commits,
                background,
                on_crash,
                tls,
                on_reload,
            )
        finally:
            background.shutdown(cancel_futures=True)
            commits.close()
    if stop.failure is not None:
        raise stop.failure
    _log.info("stopped")


def _server_tls(config: Config, on_reload: Reloads) -> ServerTls | None:
    if config.tls_certificate is None:
        return None
    tls = ServerTls(
        config.tls_certificate,
        config.tls_key,
        config.tls_client_ca,
        # Who has no certificate may have a token.
        needs_client_certificate=not config.is_protected,
    )
    on_reload.add("certificates", tls.reload)
    return tls


def _crash_reporter(bridge: Bridge, stop: _Stop) -> Callable[[BaseException], None]:
    def report(failure: BaseException) -> None:
        _log.critical("crashed", exc_info=failure)
        bridge.call_in_trio(partial(stop.request, "failure", failure))

    return report


async def _run_server(
    config: Config,
    address_file: Path | None,
    http_address_file: Path | None,
    moved_clock: MovedClock | None,
    bridge: Bridge,
    stop: _Stop,
    store: RocksStore,
    commits: CommitGroup,
    background: Executor,
    on_crash: Callable[[BaseException], None],
    tls: ServerTls | None,
    on_reload: Reloads,
) -> None:
    clock = moved_clock or SystemClock()
    callers = Callers(config, clock, bridge.loop)
    if config.is_protected or config.audit_file is not None:
        on_reload.add("callers", callers.reload)
    admission = Admission(bridge.loop, config.calls_in_flight_max)
    sweeper = Sweeper()
    reclaimer = Reclaimer()
    service = Service(
        Shell(
            open_engine(store, IdSource(Random())),
            clock=clock,
            loop=bridge.loop,
            admission=admission,
            limits=ServiceLimits(
                item_bytes_max=config.item_bytes_max,
                message_bytes_max=config.message_bytes_max,
                poll_items_max=config.poll_items_max,
                poll_wait_ms_max=config.poll_wait_ms_max,
                waiting_polls_max=config.waiting_polls_max,
                payload_bytes_max=config.payload_bytes_max,
                auto_create_topics=config.auto_create_topics,
            ),
            commits=commits if config.durability == "sync" else None,
            wake_sweeper=partial(bridge.call_in_trio, sweeper.wake),
            wake_reclaimer=partial(bridge.call_in_trio, reclaimer.wake),
            background=background,
        )
    )
    info = ServerInfo(
        VERSION,
        config.durability,
        config.item_bytes_max,
        config.message_bytes_max,
        config.poll_items_max,
        config.poll_wait_ms_max,
        reads_packed=True,
        started_at_ms=SystemClock().now_ms(),
        is_protected=config.is_protected,
        features=tuple(Feature),
    )
    budget = AnswerBudget()
    server = RpcServer(
        callers.bootstrap(service, lambda: replace(info, refuses_writes=store.refusal)),
        new_session=partial(Session, admission, budget, on_crash=on_crash),
        connections_max=_allowed_connections(config),
        message_bytes_max=config.message_bytes_max,
        loop=bridge.loop,
        tls=tls,
    )
    service.measures.sources += [
        server.families,
        budget.families,
        partial(store_families, store.properties, store.refused_writes),
    ]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sweeper.run, service)
        if moved_clock is not None:
            nursery.start_soon(moved_clock.run, partial(sweeper.look_anew, service))
        nursery.start_soon(reclaimer.run, service)
        nursery.start_soon(Sampler().run, service)
        nursery.start_soon(Syncer(store, lambda: bridge.wait(commits.wait())).run)
        host, port = await bridge.wait(server.start(*split_address(config.listen)))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if address_file is not None:
            address_file.write_text(address)
        _log.info("listening", address=address)
        gateway = gateway_beside(config, address, http_address_file)
        if gateway is not None:
            on_reload.add("gateway", gateway.reload)
            nursery.start_soon(gateway.run)

        await stop.wait_requested()
        _log.info("stopping", reason=stop.reason, calls_in_flight=admission.calls)
        if gateway is not None:
            await gateway.stop()
        server.stop_accepting()
        with trio.move_on_after(config.shutdown_timeout_ms / 1000) as grace:
            await bridge.wait(service.drain())
        if grace.cancelled_caught:
            _log.warning("calls_abandoned", calls_in_flight=admission.calls)
        await trio.sleep(_FLUSH_SECONDS)
        server.close_connections()
        nursery.cancel_scope.cancel()
    callers.close()
