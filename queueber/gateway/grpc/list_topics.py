"""ListTopics: the protocol has no pages, so the answer has the first topics by name."""

from queueber.client import AsyncClient
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.gateway.grpc.names import is_topic_name

LISTED_MAX = 10_000
"""Topics in an answer: below the 4 MiB that clients take unless they are told otherwise."""
LOOKED_AT_MAX = 20_000
"""Topics that are looked at, with those that clients cannot name: some 20 calls of the server."""


async def list_topics(
    client: AsyncClient, _request: wire.ListTopicsRequest
) -> wire.ListTopicsResponse:
    answer, looked_at = wire.ListTopicsResponse(), 0
    async for name, created_at_ms in client.topic_times():
        looked_at += 1
        if is_topic_name(name):
            answer.topics.add(name=name, created_at=created_at_ms)
        if len(answer.topics) >= LISTED_MAX or looked_at >= LOOKED_AT_MAX:
            break
    return answer
