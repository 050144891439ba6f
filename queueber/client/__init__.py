"""Clients: one connection core, a face for plain code and one for asyncio and trio."""
