"""Files: atomic writes, a cache and JSON. Knows nothing of what they hold."""
