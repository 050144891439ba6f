"""Who may do what: callers, their credentials and rights, quotas, and the audit log."""
