"""Programs that show Queueber at work."""
