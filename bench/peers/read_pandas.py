"""pandas reading an edge list from gzipped CSV or Parquet into memory: read_pandas.py FILE"""

import sys

import pandas as pd

from peer import Phases, line

phases = Phases()
with phases("read"):
    table = pd.read_parquet(sys.argv[1]) if sys.argv[1].endswith(".parquet") else pd.read_csv(sys.argv[1])
line(version=f"pandas {pd.__version__}", seconds=phases.seconds, edges=len(table), sums=[int(table.src.sum()), int(table.dst.sum())])
