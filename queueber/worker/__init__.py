"""Worker pools: lease items ahead, run a handler for each, extend leases, report outcomes.

    Worker ─▶ Pool ──────▶ Poller ─▶ Runner (threads, asyncio or trio) ─▶ Reporter ─▶ complete, fail
       │       └─ Heartbeat: extends every lease that still has an item
       └────▶ Supervisor ─▶ worker processes, each with a Pool of its own

A process has one connection, and its leases end with it: when the process dies, the server releases
its items at once.
"""
