"""Every change of a routed queue has exactly one event, in order, whatever was killed meanwhile."""
