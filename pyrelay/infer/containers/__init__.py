"""Lists, dicts, sets and texts of run-time length or content."""
