"""One thread for each product of matrices, in tests and in the processes that they start.

Import it before NumPy, which reads these names once. Several threads of BLAS wait actively for each other: beside other tests, a
product took 30 times its processor time.
"""

import os

NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
for _name in NAMES:
    os.environ.setdefault(_name, "1")
