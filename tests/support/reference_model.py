"""The queue as plain dictionaries: what the engine must do, without how."""

from dataclasses import dataclass, field


@dataclass
class ModelItem:
    contents: bytes
    visible_at_ms: int
    state: str  # ready, delayed, or held
    lease: bytes = b""


@dataclass
class ModelQueue:
    items: dict[bytes, ModelItem] = field(default_factory=dict)
    lease_expires_ms: dict[bytes, int] = field(default_factory=dict)
    totals: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("added", "polled", "removed", "expired", "extended"), 0
        )
    )

    def count(self, state: str) -> int:
        return sum(item.state == state for item in self.items.values())

    def ready_ids(self) -> list[bytes]:
        ready = [
            (i.visible_at_ms, item_id) for item_id, i in self.items.items() if i.state == "ready"
        ]
        return [item_id for _, item_id in sorted(ready)]

    def held_by(self, lease: bytes) -> list[bytes]:
        return [item_id for item_id, item in self.items.items() if item.lease == lease]

    def add(
        self, ids: list[bytes], contents: list[bytes], delays_ms: list[int], now_ms: int
    ) -> None:
        for item_id, each, delay_ms in zip(ids, contents, delays_ms, strict=True):
            state = "delayed" if delay_ms else "ready"
            self.items[item_id] = ModelItem(each, now_ms + delay_ms, state)
        self.totals["added"] += len(ids)

    def expected_poll(self, counts: list[int]) -> list[list[bytes]]:
        ready = self.ready_ids()
        answers = []
        for count in counts:
            answers.append(ready[:count])
            ready = ready[count:]
        return answers

    def poll(self, lease: bytes, ids: list[bytes], expires_at_ms: int) -> None:
        for item_id in ids:
            self.items[item_id].state = "held"
            self.items[item_id].lease = lease
        self.lease_expires_ms[lease] = expires_at_ms
        self.totals["polled"] += len(ids)

    def remove(self, item_id: bytes, lease: bytes, now_ms: int) -> bool:
        item = self.items.get(item_id)
        if item is None or not lease or item.lease != lease:
            return False
        if self.lease_expires_ms[lease] <= now_ms:
            return False
        del self.items[item_id]
        self.totals["removed"] += 1
        self._drop_if_empty(lease)
        return True

    def extend(self, lease: bytes, lease_ms: int, now_ms: int) -> bool:
        if self.lease_expires_ms.get(lease, 0) <= now_ms:
            return False
        self.lease_expires_ms[lease] = now_ms + lease_ms
        self.totals["extended"] += 1
        return True

    def sweep(self, now_ms: int) -> None:
        for lease, expires_at_ms in list(self.lease_expires_ms.items()):
            if expires_at_ms <= now_ms:
                self.end_lease(lease, now_ms)
        for item in self.items.values():
            if item.state == "delayed" and item.visible_at_ms <= now_ms:
                item.state = "ready"

    def end_lease(self, lease: bytes, now_ms: int) -> None:
        for item_id in self.held_by(lease):
            self.items[item_id].state, self.items[item_id].lease = "ready", b""
            self.items[item_id].visible_at_ms = now_ms
            self.totals["expired"] += 1
        del self.lease_expires_ms[lease]

    def _drop_if_empty(self, lease: bytes) -> None:
        if not self.held_by(lease):
            del self.lease_expires_ms[lease]
