"""Clients that mean harm, or act as if: `python -m faults.hostile` sets them on a server."""
