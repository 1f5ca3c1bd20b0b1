"""From a Python function to untyped Relay: `parse`."""
