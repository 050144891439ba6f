"""Worker pools: poll ahead, run a handler for each item, keep the leases alive, report in batches.

    Worker ─▶ Pool ──────▶ poll ─▶ runner (threads, asyncio or trio) ─▶ outlet ─▶ complete, fail
       │       └─ heartbeat: extends every lease that still has an item
       └────▶ Supervisor ─▶ processes, each with a Pool of its own

One process is one connection, and its leases are bound to it: when the process dies, the server
gives its items to others at once.
"""
