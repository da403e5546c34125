"""Files: written whole or not at all, cached, and read as JSON. Knows nothing of what they hold."""
