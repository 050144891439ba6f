"""What users pass to the client: checked, and turned into what calls send."""
