"""What the native modules do with arrays. `evo.native.stack_ptx_tables` has what Python can do."""

cdef inline void* address(array):
    """The address of an array's data."""
    return <void*><size_t>array.ctypes.data
