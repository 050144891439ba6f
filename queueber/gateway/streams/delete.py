"""DELETE: a stream is gone; one with forks is kept for them, and for nobody else."""

from typing import Any

from queueber.gateway.calls import Call
from queueber.gateway.routes import PlainAnswer
from queueber.gateway.streams import answers
from queueber.gateway.streams.paths import no_stream, stream_path
from queueber.gateway.streams.stream_info import described


async def delete(call: Call[Any, Any]) -> PlainAnswer:
    path = stream_path(call.names)
    if not await call.client.delete_topic(path):
        await described(call.client, path)  # one that is kept for its forks is told apart
        raise no_stream(path)
    return answers.done(204, [])
