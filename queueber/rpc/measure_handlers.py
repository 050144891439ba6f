"""The methods of the bootstrap object about what the server measures."""

from typing import Any

from queueber.rpc.calls import Methods, call, many
from queueber.wire.measures import read_span, write_families, write_histories


class MeasureMethods(Methods):
    @call
    async def metrics_context(self, context: Any) -> None:
        self._session.answers.check()
        families = self._service.measures.families()
        write_families(context.results.init("families", len(families)), families)
        self._count(context)

    @call
    async def histories_context(self, context: Any) -> None:
        self._session.answers.check()
        params, results = context.params, context.results
        queues, topics = many("queues", params.queues), many("topics", params.topics)
        span = read_span(params.span)
        found = self._service.measures.histories(queues, topics, span, params.points, self._session)
        write_histories(results.init("queues", len(queues)), [found.queues[n] for n in queues])
        write_histories(results.init("topics", len(topics)), [found.topics[n] for n in topics])
        self._count(context)
