"""Breaking Queueber on purpose: histories of calls, a checker of them, and a simulation."""
