"""Work beside the main thread: native work in threads (`crew`), Python in processes (`processes`), of which each is a `process`.

Owns how threads and processes start, work, fail and end. Knows nothing of what they do.
"""

# Longest uninterrupted wait of a calling thread: so often it sees Ctrl-C, which the system may deliver to another thread, and
# looks at time limits.
WAKE_S = 0.1
MAX_WORKERS = 512  # processes or threads that a user can ask for; each takes tens of MB
