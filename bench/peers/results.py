"""The results of a run, and their file."""

from dataclasses import asdict, dataclass, field
from typing import Any

OURS = "Queueber"

AS_BEFORE = "RocksDB alone, an entry an item (as before)"
NOW = "RocksDB alone, what is written now"
"""The two upper limits; `limit.py` says what they write."""

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Result:
    taken_at: str
    command: str
    machine: dict[str, Any]
    peers: dict[str, dict[str, Any]]
    """By name: version, client, synced, notes, and figures by column."""
    limits: dict[str, dict[str, Figures]]
    """By yardstick and column."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Peers that could not be measured, and why."""

    def shown(self) -> dict[str, Any]:
        return asdict(self)

    def figure(self, peer: str, column: str, name: str) -> float | None:
        if peer not in self.peers:
            return None
        found: float | None = self.peers[peer]["figures"].get(column, {}).get(name)
        return found

    def limit(self, yardstick: str, column: str) -> float | None:
        return self.limits.get(yardstick, {}).get(column, {}).get("items/s")

    def is_synced(self, peer: str) -> bool:
        synced: str = self.peers[peer]["synced"]
        return not synced.startswith("no")

    def best_peer(self, column: str, name: str, *, least: bool = False) -> tuple[str, float] | None:
        """The best figure of the peers that sync: the highest, or the lowest if less is better."""
        found = {
            peer: figure
            for peer in self.peers
            if peer != OURS
            and self.is_synced(peer)
            and (figure := self.figure(peer, column, name)) is not None
        }
        if not found:
            return None
        best = (min if least else max)(found, key=lambda peer: found[peer])
        return best, found[best]
