"""Programs to cubins: requests, packing, worker processes, the cubin cache, and what happens when a compilation fails.

Never opens a device. A failure is a value; see `CompileFailure`.
"""
