"""Finding: one item by its id or key, in whatever state, and what happened to it."""

from dataclasses import replace

from queueber.engine.queue.find import find_item, id_of_key
from queueber.errors import InvalidArgument
from queueber.limits import KEY_BYTES_MAX
from queueber.model import Finding
from queueber.service.lease_holders import LeaseHolders
from queueber.service.session import QueueHandle
from queueber.service.shell import Shell
from queueber.service.validate.arguments import check_ids, check_text


class Find:
    def __init__(self, shell: Shell, lease_holders: LeaseHolders) -> None:
        self._shell = shell
        self._lease_holders = lease_holders

    def find_item(self, queue: QueueHandle, item_id: bytes, key: str, offset: int = 0) -> Finding:
        """The item of an id, or the first one with a key, as far as one call looks for it.

        With an `offset`, which the call before has told, the search in the results goes on there.
        """
        queue.check_alive()
        if bool(item_id) == bool(key):
            raise InvalidArgument("id: give an id or a key, and not both")
        if item_id:
            check_ids("id", [item_id])
        else:
            check_text("key", key, KEY_BYTES_MAX)
        engine, state = self._shell.engine, queue.state
        if not 0 <= offset <= state.results.head.next_offset:
            raise InvalidArgument(
                f"after: {offset} is behind the last result; give what the call before said"
            )
        item_id = item_id or id_of_key(engine.store, state, key, self._shell.clock.now_ms())
        if not item_id:
            return Finding(b"", None)
        finding = find_item(engine.store, state, item_id, offset)
        found = finding.found
        if found is None or found.lease is None:
            return finding
        held = replace(found.lease, holder=self._lease_holders.holder(found.lease.lease_id))
        return replace(finding, found=replace(found, lease=held))
