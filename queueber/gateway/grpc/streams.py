"""The open streams of one process: how many there may be, and how each of them ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from queueber.errors import InvalidArgument, QueueberError, Unavailable
from queueber.gateway.bounds import STOPPING, Bound
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.calls import Calls, caller_of, first_of, parsed
from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.http2.shared import Handler
from queueber.gateway.grpc.statuses import OUR_FAULT, Status, status_of
from queueber.gateway.grpc.subscribe import Stream
from queueber.gateway.log import log
from queueber.gateway.problems import Problem
from queueber.limits import GRPC_OPEN_STREAMS_MAX

METHOD = "Subscribe"


class Streams:
    def __init__(self, calls: Calls, bound: Bound) -> None:
        self._calls = calls
        self.bound = bound
        self.without_credential = Bound(
            "streams of health and reflection are open", GRPC_OPEN_STREAMS_MAX
        )
        """Of those that anybody may open: they take nobody's place in `bound`."""
        self._open: set[Stream] = set()
        self._is_stopping = False

    async def subscribe(self, call: Call) -> None:
        """Handle one stream."""
        calls = self._calls
        status, text = Status.OK, ""
        stream = Stream(call, calls.bounds, calls.measures, calls.settings.grpc_heartbeat_ms)
        try:
            with self.bound.taken():
                self._open.add(stream)
                if self._is_stopping:
                    raise Unavailable(STOPPING)
                init = _init_of(first_of(call))
                async with calls.pool.client_for(caller_of(call)) as client:
                    await stream.run(client, init)
        except (QueueberError, Problem) as error:
            status, text = status_of(error)
        except asyncio.CancelledError:
            status = Status.CANCELLED
            if stream.error is None or stream.is_cut:
                raise
            status, text = status_of(stream.error)
        except Exception as error:  # noqa: BLE001  one stream fails, and the log says why
            status, text = Status.INTERNAL, OUR_FAULT
            log.error("request_failed", path=METHOD, exc_info=error)
        finally:
            self._open.discard(stream)
            calls.bounds.unread.forget(stream)
            calls.measures.stream_ended(METHOD, status)
            call.finish(status, text)

    def stop(self) -> None:
        """The gateway stops: end all streams, and begin no others."""
        self._is_stopping = True
        for stream in list(self._open):
            stream.end(Unavailable(STOPPING))

    def for_all(
        self,
        handle: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]],
        name: str,
        seconds_max: float | None = None,
    ) -> Handler:
        """The handler of another method that answers with messages, and asks for no credential. It
        ends a stream that is open for too long."""

        async def answer(call: Call) -> None:
            status, text = Status.OK, ""
            try:
                with self.without_credential.taken():
                    async with asyncio.timeout(seconds_max):
                        async for each in handle(_said(call)):
                            await call.write(each)
            except TimeoutError:
                status = Status.UNAVAILABLE
                text = f"the stream was open for {seconds_max} seconds, the limit; open another"
            except (QueueberError, Problem) as error:
                status, text = status_of(error)
            except Exception as error:  # noqa: BLE001  one stream fails, and the log says why
                status, text = Status.INTERNAL, OUR_FAULT
                log.error("request_failed", path=name, exc_info=error)
            finally:
                call.finish(status, text)

        return answer


async def _said(call: Call) -> AsyncIterator[bytes]:
    while (raw := await call.read()) is not None:
        yield raw


def _init_of(raw: bytes) -> Any:
    message = parsed(wire.SubscribeUpstream, raw)
    if message.WhichOneof("request") != "init":
        raise InvalidArgument("init: the first message of a stream must be one")
    return message.init
