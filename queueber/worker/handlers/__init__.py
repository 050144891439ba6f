"""Calls of the handler: in threads, or as coroutines of asyncio or trio; one outcome an item."""
