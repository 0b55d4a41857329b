"""Rows of a run for training: ndls.NodeRows beside a loader that reads a row at a time.

    python loader.py [--run RUN] [--nodes 2000000] [--features 128] [--size 4096] [--seconds 20]

Without --run it makes a graph of that size first. Each loader is measured in a process of its
own, until it has read all rows or --seconds have passed, with the files out of the page cache
before it (--warm: in it). The lines say how many rows and bytes it reads in a second:

    read      the same files, 1 MiB at a time: what the disk gives
    batches   NodeRows.batches(size, shuffle=1)
    torch     ndls.torch.Batches in a DataLoader with two workers
    loader    torch's DataLoader over NodeRows, shuffle=True, two workers: a row at a time
    rows      the same without torch and workers: rows[i] in random order, stacked

torch and loader are left out where torch is not installed. It needs the package ndls.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import ndls

LOADERS = ("read", "batches", "torch", "loader", "rows")


def files(run: ndls.Run) -> list[str]:
    return sorted({extent.path for extent in run.features.extents})


def read(run: ndls.Run, size: int) -> Iterator[int]:
    """Yields how many rows each read has."""
    row = run.features.shape[1] * run.features.dtype.itemsize
    buffer = bytearray(1 << 20)
    for path in files(run):
        with open(path, "rb", buffering=0) as file:
            while n := file.readinto(buffer):
                yield n // row


def batches(run: ndls.Run, size: int) -> Iterator[int]:
    for batch in ndls.NodeRows(run).batches(size, shuffle=1):
        yield len(batch.y)


def torch(run: ndls.Run, size: int) -> Iterator[int]:
    from torch.utils.data import DataLoader

    from ndls.torch import Batches

    for batch in DataLoader(Batches(ndls.NodeRows(run), size, shuffle=1), batch_size=None, num_workers=2):
        yield len(batch.y)


def loader(run: ndls.Run, size: int) -> Iterator[int]:
    from torch.utils.data import DataLoader

    for _, y in DataLoader(ndls.NodeRows(run), batch_size=size, shuffle=True, num_workers=2):
        yield len(y)


def rows(run: ndls.Run, size: int) -> Iterator[int]:
    data = ndls.NodeRows(run)
    order = np.random.default_rng(1).permutation(len(data))
    for lo in range(0, len(order), size):
        pairs = [data[i] for i in order[lo : lo + size]]
        np.stack([x for x, _ in pairs])
        np.array([y for _, y in pairs])
        yield len(pairs)


def measure(name: str, path: str, size: int, seconds: float) -> dict[str, object]:
    run = ndls.open(path)
    total = len(run.features)
    row = run.features.shape[1] * run.features.dtype.itemsize
    ndls.NodeRows(run).take([0])  # opens the files, which takes as long for each loader
    begun, n = time.perf_counter(), 0
    for some in globals()[name](run, size):
        n += some
        if time.perf_counter() - begun > seconds:
            break
    took = time.perf_counter() - begun
    return {"what": name, "rows": n, "of": total, "seconds": round(took, 3), "rows_per_second": n / took, "bytes_per_second": n * row / took}


def make(folder: str, nodes: int, features: int) -> str:
    run = os.path.join(folder, "run")
    dataset = f"synthetic:nodes={nodes},edges={2 * nodes},features={features},classes=8,seed=1"
    ndls.command("partition", progress=False, dataset=dataset, run=run)
    ndls.command("lsi", progress=False, run=run, probes=16)
    ndls.command("smooth", progress=False, run=run, rule="sgc", hops=1)
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="run directory with smoothed rows")
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--size", type=int, default=4096, help="rows of a batch")
    parser.add_argument("--seconds", type=float, default=20, help="longest measurement of a loader")
    parser.add_argument("--warm", action="store_true", help="measure with the files in the page cache")
    parser.add_argument("--folder", help="where the graph is made, by default a temporary folder")
    parser.add_argument("--measure", choices=LOADERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.measure, args.run, args.size, args.seconds)), flush=True)
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = args.run or make(folder, args.nodes, args.features)
        paths = sorted(map(str, Path(path, "smoothed").glob("*.arrow")))
        for name in LOADERS:
            if name in ("torch", "loader") and not find_spec("torch"):
                print(f"{name}: left out, torch is not installed", file=sys.stderr)
                continue
            for file in paths:
                descriptor = os.open(file, os.O_RDONLY)
                if args.warm:
                    while os.read(descriptor, 1 << 20):
                        pass
                else:
                    os.fsync(descriptor)
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)
            again = [sys.executable, __file__, "--measure", name, "--run", path, "--size", str(args.size), "--seconds", str(args.seconds)]
            subprocess.run(again, check=True)


if __name__ == "__main__":
    main()
