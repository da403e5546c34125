"""How long a thread waits for others at a time."""

# Longest uninterrupted wait of a calling thread: so often it sees Ctrl-C, which the system may deliver to another thread, and
# looks at time limits.
WAKE_S = 0.1
