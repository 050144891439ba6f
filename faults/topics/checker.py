"""The checker of histories of topics: finds everything that a history proves to be wrong."""

from collections.abc import Callable, Iterator, Mapping

from faults.facts import Violation
from faults.final_state import FinalState
from faults.history import History
from faults.topics import calls, conditions, messages, pushes, settled
from faults.topics.facts import TopicFacts
from faults.topics.final import FinalTopics

Rule = Callable[[TopicFacts], Iterator[Violation]]

TOPIC_RULES: Mapping[str, Rule] = {
    "stable": messages.stable,
    "message lost": messages.lost,
    "deleted early": messages.deleted_early,
    "gap": messages.gaps,
    "visible": messages.visible,
    "phantom": messages.phantom,
    "order": calls.order,
    "asked": calls.asked,
    "conditions": conditions.conditions,
    "first": conditions.first_messages,
    "cut": conditions.cut,
    "producer": calls.producers,
    "cursor": calls.cursors,
    "late": calls.late,
    "pushed": pushes.pushed,
    "taken over": pushes.taken_over,
}


def check_topics(
    history: History,
    final: FinalTopics,
    queues: Mapping[str, FinalState],
    bridges: Mapping[str, str],
) -> list[Violation]:
    """`bridges` has the topic whose messages each of some queues gets, and which nobody polls."""
    facts = TopicFacts(history, final)
    found = [violation for rule in TOPIC_RULES.values() for violation in rule(facts)]
    found += calls.together(facts, queues)
    found += settled.settled(history, queues)
    found += settled.windows(history)
    for queue, topic in bridges.items():
        found += calls.bridged(facts, queues[queue], topic)
    return found
