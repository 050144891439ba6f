"""The service: the engine's operations for many callers at once, one object for each noun."""

import structlog

from queueber.db.records.keys import NEVER_MS
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics.sweep import next_due_ms, sweep
from queueber.engine.topics.topic_state import TopicState
from queueber.service.backups import Backups
from queueber.service.bound_leases import BoundLeases
from queueber.service.callbacks import Callbacks
from queueber.service.commit_hold import CommitHold
from queueber.service.consumers import Consumers
from queueber.service.durable_ends import DurableEnds
from queueber.service.find import Find
from queueber.service.groups import Groups
from queueber.service.items import Items
from queueber.service.lease_holders import LeaseHolders
from queueber.service.loads import Loads
from queueber.service.measures.measures import Measures
from queueber.service.polls import Polls
from queueber.service.publish import Publishing
from queueber.service.queues import Queues
from queueber.service.reads import Reads
from queueber.service.result_topics import ResultTopics
from queueber.service.results import Results
from queueber.service.routes import Routes
from queueber.service.schedules import Schedules
from queueber.service.schemas import Schemas
from queueber.service.shell import Shell
from queueber.service.snapshots import Snapshots
from queueber.service.subscriptions import Subscriptions
from queueber.service.together import TogetherCalls
from queueber.service.topics import Topics
from queueber.service.windows import Windows

_log = structlog.get_logger("queueber.service")


class Service:
    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.limits = shell.limits
        self.bound_leases = BoundLeases(shell)
        self.lease_holders = LeaseHolders()
        shell.engine.kernel.when_leases_end = self.lease_holders.ended
        self.items = Items(shell, self.lease_holders)
        self.find = Find(shell, self.lease_holders)
        self.polls = Polls(shell, self.bound_leases, self.lease_holders)
        self.measures = Measures(shell, self.polls.waits, self.polls.waiting)
        self.results = Results(shell)
        self.snapshots = Snapshots(shell)
        commit_hold = CommitHold(shell)
        self.loads = Loads(shell, commit_hold)
        self.backups = Backups(shell, commit_hold)
        self.queues = Queues(shell, self.polls, self.snapshots)
        self.schedules = Schedules(shell, self.queues)
        self.callbacks = Callbacks(shell, self.queues)
        ends = DurableEnds(shell, self._messages_came)
        self.publishing = Publishing(shell, ends)
        self.topics = Topics(
            shell, self.publishing, ends, self._topic_gone, self.measures.topics.use
        )
        self.schemas = Schemas(shell, self.topics)
        self.routes = Routes(shell, self.topics, ends)
        self.reads = Reads(shell, self.topics, self.publishing, ends)
        consumers = Consumers()
        self.groups = Groups(shell, self.topics, self.publishing, consumers, self._group_gone)
        self.result_topics = ResultTopics(shell, self.queues, consumers)
        self.subscriptions = Subscriptions(
            shell,
            self.topics,
            self.groups,
            self.reads,
            self.result_topics,
            consumers,
            self.items,
            self.bound_leases,
            self.lease_holders,
        )
        self.windows = Windows(shell, self.topics, self.groups, self.polls)
        self.together = TogetherCalls(shell, self.publishing, ends, consumers.check)
        shell.serve_waiting_polls = self._serve

    # --- who is woken by what ---------------------------------------------------------------------

    def _serve(self, queue: QueueState) -> None:
        """Something may be ready in a queue, or in a shared group."""
        self.polls.serve(queue)
        self.subscriptions.queue_changed(queue)

    def _messages_came(self, topic: TopicState) -> None:
        """Messages of a topic are durable, or it is closed or gone."""
        self.measures.topics.use(topic)
        self.shell.wakeups.fire(topic)
        self.subscriptions.messages_came(topic)
        for group in topic.groups.values():
            if (queue := group.opened_queue) is not None:
                self._serve(queue)

    def _topic_gone(self, topic: TopicState) -> None:
        """A topic was deleted, or has expired: whoever waits hears of it."""
        for queue in self.groups.opened(topic):
            self._group_gone(queue)
        self.shell.wakeups.fire(topic)
        self.subscriptions.messages_came(topic)
        self.shell.wake_reclaimer()

    def _group_gone(self, queue: QueueState) -> None:
        queue.is_deleted = True
        self.polls.queue_deleted(queue)

    # --- time and shutdown ------------------------------------------------------------------------

    def sweep(self) -> bool:
        """Do one slice of what is due; False when nothing was."""
        now_ms = self.shell.clock.now_ms()
        if self.bound_leases.due_ms <= now_ms:
            self.bound_leases.expire_slice()
            return True
        self.snapshots.expire_snapshots(now_ms)
        self.backups.expire_backups(now_ms)
        engine = self.shell.engine
        swept = sweep(engine.kernel, engine.queues, engine.topics, now_ms)
        if swept is None:
            return False
        if swept.queue is not None and swept.moved is not None:
            self.polls.swept(swept.queue, swept.moved)
        for queue in swept.filled:
            self.shell.after_write(queue)
        for group, stop in swept.stops:
            self.groups.tell_stop(group, stop)
        for error in swept.unreadable:
            _log.error("topic_unreadable", reason=str(error))
        if swept.topic is not None and swept.topic.record.is_deleted:
            self._topic_gone(swept.topic)
        return True

    def next_due_in_ms(self) -> int | None:
        """How long nothing will be due; None when nothing ever will, as things stand."""
        shell, engine = self.shell, self.shell.engine
        swept_ms = next_due_ms(engine.kernel, engine.topics, shell.clock.now_ms())
        due_ms = min(swept_ms, self.bound_leases.due_ms, self.snapshots.due_ms, self.backups.due_ms)
        shell.sweeper_sleeps_until(due_ms)
        return None if due_ms == NEVER_MS else max(0, due_ms - shell.clock.now_ms())

    async def drain(self) -> None:
        """Let no call in any more, answer those that wait, and wait until no call is left."""
        self.shell.admission.close()
        self.polls.answer_all()
        self.shell.wakeups.fire_all()
        self.subscriptions.server_stops()
        # Those that were just answered count as calls again after their next turn.
        await self.shell.next_turn()
        await self.shell.admission.wait_idle()
        self.snapshots.server_stops()
        self.backups.server_stops()
