"""The results of a run, and their file."""

from dataclasses import asdict, dataclass
from typing import Any

OURS = "Queueber"


@dataclass(frozen=True, slots=True)
class Result:
    taken_at: str
    command: str
    machine: dict[str, Any]
    peers: dict[str, dict[str, Any]]
    """By name: version, client, synced, notes, and figures by column."""
    limit: dict[str, dict[str, float]]

    def shown(self) -> dict[str, Any]:
        return asdict(self)

    def figure(self, peer: str, column: str, name: str) -> float | None:
        found: float | None = self.peers[peer]["figures"].get(column, {}).get(name)
        return found

    def best_peer(self, column: str, name: str, *, least: bool = False) -> tuple[str, float] | None:
        """The best figure of the peers that sync: the highest, or the lowest if less is better."""
        found = {
            peer: figure
            for peer, line in self.peers.items()
            if peer != OURS
            and not line["synced"].startswith("no")
            and (figure := self.figure(peer, column, name)) is not None
        }
        if not found:
            return None
        best = (min if least else max)(found, key=lambda peer: found[peer])
        return best, found[best]
