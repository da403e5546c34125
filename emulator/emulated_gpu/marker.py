"""Marker between a cubin and its PTX; libcuda.c has the same. Eight bytes with the PTX's length follow it."""

MARKER = b"\nemulated GPU: PTX follows\n"
