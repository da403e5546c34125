"""A search made from a config, and its folder: start, checkpoint, resume, stops."""
