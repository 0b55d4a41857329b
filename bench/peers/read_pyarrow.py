"""pyarrow reading an edge list from gzipped CSV or Parquet into memory: read_pyarrow.py FILE"""

import os
import sys

import pyarrow as pa
from pyarrow import compute, csv, parquet

from peer import Phases, line

pa.set_cpu_count(int(os.environ["OMP_NUM_THREADS"]))
phases = Phases()
with phases("read"):
    table = parquet.read_table(sys.argv[1]) if sys.argv[1].endswith(".parquet") else csv.read_csv(sys.argv[1])
sums = [compute.sum(table[name]).as_py() for name in ("src", "dst")]
line(version=f"pyarrow {pa.__version__}", seconds=phases.seconds, edges=len(table), sums=sums)
