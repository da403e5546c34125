"""Programs to cubins: requests, packing, worker processes, the cubin cache and failed compilations.

Never opens a device. A failure is a value; see `CompileFailure`.
"""
