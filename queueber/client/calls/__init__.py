"""Calls to the server, one file for each group. They run on the loop of the connection."""
