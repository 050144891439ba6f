"""A caller without a client library: it gives any value in any field, and hears what was wrong."""

import copy
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from faults.hostile import messages
from faults.hostile.raw import Raw
from queueber.db.families import Family
from queueber.db.recovery.wal import SYNCED_KEY
from queueber.db.store.rocks import RocksStore
from queueber.errors import StorageCorrupt
from tests.support.dumps import Dump, dump

_TRIES_MAX = 20
_PAUSE_SECONDS = 0.02
_CAPABILITIES = {"queue", "topic", "Topic.group", "Topic.subscribe"}
"""Methods that answer with a capability, of which no more is to be seen."""


def fields_of(schema: Any, at: str = "") -> Iterator[str]:
    """Every field below a struct of the schema; `[]` is an element of a list. Capabilities are left
    out."""
    for each in schema.node.struct.fields:
        path, kind = f"{at}{each.name}", each.slot.type.which()
        if kind == "struct":
            yield from fields_of(schema.fields[each.name].schema, f"{path}.")
        elif kind == "list":
            yield path
            element = each.slot.type.list.elementType.which()
            if element == "struct":
                inner = schema.fields[each.name].schema.elementType
                yield from fields_of(inner, f"{path}[].")
            else:
                yield f"{path}[]"
        elif kind != "interface":
            yield path


def with_field(params: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """The same parameters with another value at a path; of a list, in its first element."""
    changed = copy.deepcopy(params)
    at: Any = changed
    *parents, last = re.findall(r"\w+|\[\]", path)
    for step, then in pairwise([*parents, last]):
        if step == "[]":
            at[0] = {} if at[0] is None else at[0]
            at = at[0]
        else:
            at = at.setdefault(step, [None] if then == "[]" else {})
    at[0 if last == "[]" else last] = value
    return changed


def code_of(told: object) -> str:
    """The code of an error; empty when there was none."""
    if not isinstance(told, str):
        return ""
    found = re.match(r"(remote exception: )?(message = )?([A-Z_]+): \S", told)
    assert found, told
    return found[3]


def stored(data_dir: Path) -> Dump:
    """All that a running server has stored, but for the note how far it has synced."""
    for _ in range(_TRIES_MAX):
        try:
            with RocksStore(data_dir, read_only=True) as store:
                found = dump(store)
        except StorageCorrupt:
            continue  # a file was deleted while it was looked at
        notes = found[Family.DEFAULT.family_name]
        notes[:] = [(key, value) for key, value in notes if key != SYNCED_KEY]
        return found
    raise AssertionError("the store could not be read")


def stored_at_rest(data_dir: Path) -> Dump:
    """The same, once nothing is deleted in the background any more."""
    before, found = None, stored(data_dir)
    while found != before or _reclaims(found):
        time.sleep(_PAUSE_SECONDS)
        before, found = found, stored(data_dir)
    return found


def _reclaims(found: Dump) -> bool:
    """Whether a queue or topic was deleted, and its space is not free yet."""
    return any(key.startswith(b"reclaim") for key, _ in found[Family.DEFAULT.family_name])


class FieldCaller:
    """One connection; of each call it hears what was wrong."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self._raw.send(messages.bootstrap())
        self._said = self._raw.messages()
        next(self._said)
        self._question = 0
        self._leases: list[bytes] = []

    def ask(self, method: str, params: dict[str, Any], *, of: int = 0) -> Any:
        """The answer; or the text of the error."""
        answer = self._answer(method, params, of)
        self._raw.send(messages.finish(self._question))
        return answer

    def code(self, method: str, params: dict[str, Any], *, of: int = 0) -> str:
        return code_of(self.ask(method, params, of=of))

    def tell(self, method: str, params: dict[str, Any], *, of: int = 0) -> int:
        """Call without waiting for the answer. Returns the number to call a capability by that is
        answered with; it is kept."""
        self._question += 1
        self._raw.send(messages.call(self._question, method, of=of, **params))
        return self._question

    def let_go(self, *held: int) -> None:
        for question in held:
            self._raw.send(messages.finish(question))

    def next_lease(self) -> bytes:
        """The next lease that is delivered to a consumer of this connection."""
        while not self._leases:
            self._hear(next(self._said), "")
        return self._leases.pop(0)

    def _answer(self, method: str, params: dict[str, Any], of: int) -> Any:
        self.tell(method, params, of=of)
        for said in self._said:
            answer = self._hear(said, method)
            if answer is not None:
                return answer
        raise AssertionError("the server hung up")

    def _hear(self, said: bytes, method: str) -> Any:
        """The answer to the last question, a call of that method; None if it is another message."""
        with messages.rpc.Message.from_bytes(said) as told:
            if told.which() == "call":
                if told.call.methodId == 0:
                    kind = messages.CONSUMER_SCHEMA.methods["deliver"].param_type
                    lease = told.call.params.content.as_struct(kind).delivery.lease
                    self._leases += [lease] if lease else []
                return None
            answer = getattr(told, "return") if told.which() == "return" else None
            if answer is None or answer.answerId != self._question or not method:
                return None
            if answer.which() == "exception":
                return str(answer.exception.reason)
            if method in _CAPABILITIES:
                return {}
            known = messages.METHODS[method][2]
            return answer.results.content.as_struct(known.result_type).to_dict()
