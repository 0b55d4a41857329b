"""Compares runs with --active settled and --active exact: K, and smoothed rows.

    python bench/accuracy/deviation.py build/ndls planetoid:cora/cora 0.03 [SLACK]

makes both runs in a temporary folder and prints how many K differ, and the
relative error of whole smoothed rows, beside the figure that ndls reports.
"""

import glob
import json
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def load(run):
    """Returns K and smoothed rows in order of input id."""
    k = pa.concat_tables(pq.read_table(f) for f in glob.glob(run + "/lsi/*.parquet")).sort_by("id")["k"].to_numpy()
    parts = [pa.ipc.open_file(f).read_all() for f in glob.glob(run + "/smoothed/*.arrow")]
    ids = np.concatenate([p["id"].to_numpy() for p in parts])
    rows = np.concatenate([c.flatten().to_numpy().reshape(len(c), -1) for p in parts for c in p["feature"].chunks])
    return k.astype(int), rows[np.argsort(ids)].astype(float)


def main(ndls, dataset, epsilon, slack="10"):
    with tempfile.TemporaryDirectory() as folder:
        for active in ("exact", "settled"):
            run = f"{folder}/{active}"
            for verb in (
                ["partition", "--dataset", dataset],
                ["lsi", "--epsilon", epsilon, "--active", active, "--slack", slack],
                ["smooth"],
            ):
                subprocess.run([ndls, *verb, "--run", run, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        (k, rows), (settled_k, settled_rows) = load(f"{folder}/exact"), load(f"{folder}/settled")
        stages = json.load(open(f"{folder}/settled/run.json"))["stages"]
    reported = next(s["deviation"] for s in stages if s.get("deviation"))
    change = settled_k - k
    norm = np.linalg.norm(rows, axis=1)
    error = np.linalg.norm(settled_rows - rows, axis=1) / np.where(norm > 0, norm, 1)
    print(f"K differs for {np.mean(change != 0):.1%} of the nodes, by at most {abs(change).max()}; it is lower for {np.mean(change < 0):.1%}")
    print(f"reported: mean {reported['mean']:.1e}, 99th percentile {reported['p99']:.1e}")
    print(f"whole:    mean {error.mean():.1e}, 99th percentile {np.quantile(error, 0.99):.1e}, largest {error.max():.1e}")


main(*sys.argv[1:])
