"""The compile farm: workers on other machines fulfil a run's compile requests over ZeroMQ.

Owns the wire format (docs/farm.md), the keys, and both ends. Knows nothing of what a request compiles. Needs pyzmq and msgpack:
`evo-ptx[farm]`.
"""
