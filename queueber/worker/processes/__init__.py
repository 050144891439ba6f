"""Several worker processes: started, supervised and restarted by the process of the user."""
