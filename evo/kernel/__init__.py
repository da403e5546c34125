"""Kernel templates: PTX with sites for programs' stubs.

Owns the kernels' text, the registers of their sites and the launch contract. Knows nothing of how PTX is compiled or run.
"""
