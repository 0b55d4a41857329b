"""The sample that propagation.py compares, of the smoothed features of a run of ndls: sample.py RUN"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from peer import line
from propagation import SAMPLE

files = [pa.ipc.open_file(pa.memory_map(str(path))) for path in sorted(Path(sys.argv[1], "smoothed").glob("*.arrow"))]
batches = [f.get_batch(i) for f in files for i in range(f.num_record_batches)]
every = np.sort(np.concatenate([b["id"].to_numpy() for b in batches]))
place = {int(node): i for i, node in enumerate(every[np.arange(SAMPLE) * len(every) // SAMPLE])}
sample = np.zeros((SAMPLE, 2))
for batch in batches:
    ids, features = batch["id"].to_numpy(), batch["feature"]
    for row in np.flatnonzero(np.isin(ids, list(place))):
        values = features[int(row)].values.to_numpy().astype(np.float64)
        sample[place[int(ids[row])]] = values.sum(), np.abs(values).sum()
line(sample=sample.tolist())
