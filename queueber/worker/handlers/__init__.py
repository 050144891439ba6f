"""The user's function: how it is found, called with an item, and run in threads or tasks."""
