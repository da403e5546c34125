"""Array helpers of the native modules. `evo.native.stack_ptx_tables` has what Python can do."""

from cpython.buffer cimport PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer


cdef inline void* address(array) except? NULL:
    """The address of an array's data. `array.ctypes.data` takes ten times as long."""
    cdef Py_buffer buffer
    PyObject_GetBuffer(array, &buffer, PyBUF_STRIDES)
    PyBuffer_Release(&buffer)
    return buffer.buf
