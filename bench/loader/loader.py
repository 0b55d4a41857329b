"""Rows of a run for training: ndls.NodeRows beside a loader that reads a row at a time.

    python loader.py [--run RUN] [--nodes 2000000] [--features 128] [--size 4096] [--seconds 20]

Without --run it makes random rows of that size first. Each loader is measured in a process of its
own, until it has read all rows or --seconds have passed, with the files out of the page cache
before it (--warm: in it). The lines say how many rows and bytes it reads in a second, the processor
time of the process, and the most memory that is no page of a file, of it and its workers:

    read      the same files, 1 MiB at a time, by four threads: what the disk gives
    direct    the same past the page cache
    batches   NodeRows.batches(size, shuffle=1)
    torch     ndls.torch.Batches in a DataLoader
    worker    the same with a worker process
    model     steps of a perceptron (--hidden) on one batch that is in memory: what the processor gives
    fed       steps of the perceptron on the batches of torch
    loader    torch's DataLoader over NodeRows, shuffle=True, two workers: a row at a time
    naive     steps of the perceptron on the batches of loader
    rows      rows[i] in random order, stacked, without torch and workers

What needs torch is left out where it is not installed. It needs the package ndls.
"""

import argparse
import importlib
import json
import mmap
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import ndls

Step = Callable[[Any, Any], None]


def read(run: ndls.Run, args: argparse.Namespace, flags: int = 0) -> Iterator[int]:
    """Yields how many rows each read has."""
    row = run.features.shape[1] * run.features.dtype.itemsize
    block = 1 << 20
    paths = sorted({extent.path for extent in run.features.extents})
    blocks = [(file, at) for path in paths for file in [os.open(path, os.O_RDONLY | flags)] for at in range(0, os.path.getsize(path), block)]
    threads = threading.local()

    def some(file: int, at: int) -> int:
        if not hasattr(threads, "buffer"):
            threads.buffer = mmap.mmap(-1, block)  # begins with a page, as reads past the page cache want it
        return os.preadv(file, [threads.buffer], at)

    with ThreadPoolExecutor(4) as pool:
        try:
            for size in pool.map(some, *zip(*blocks, strict=True)):
                yield size // row
        finally:
            pool.shutdown(cancel_futures=True)


def direct(run: ndls.Run, args: argparse.Namespace) -> Iterator[int]:
    return read(run, args, os.O_DIRECT)


def batches(run: ndls.Run, args: argparse.Namespace) -> Iterator[int]:
    for batch in ndls.NodeRows(run).batches(args.size, shuffle=1):
        yield len(batch.y)


def perceptron(run: ndls.Run, args: argparse.Namespace) -> Step:
    """Returns what makes a step of training."""
    import torch
    from torch import nn, optim

    width = run.features.shape[1]
    model = nn.Sequential(nn.Linear(width, args.hidden), nn.ReLU(), nn.Linear(args.hidden, len(run.classes)))
    adam = optim.Adam(model.parameters())

    def step(x: Any, y: Any) -> None:
        adam.zero_grad()
        # With the classes first the loss takes a fifth of the time that it takes with rows of few classes, and has
        # the same gradients: PyTorch's softmax adds many rows at a time only along a dimension that is not the last.
        nn.functional.cross_entropy(model(x).t()[None], y[None]).backward()
        adam.step()

    # The first step imports parts of torch, which takes seconds.
    step(*(torch.zeros(args.size, *shape, dtype=kind) for shape, kind in (((width,), torch.float32), ((), torch.int64))))
    return step


def tensors(run: ndls.Run, args: argparse.Namespace, workers: int) -> Iterator[Any]:
    from torch.utils.data import DataLoader

    from ndls.torch import Batches

    return iter(DataLoader(Batches(ndls.NodeRows(run), args.size, shuffle=1), batch_size=None, num_workers=workers))


def torch(run: ndls.Run, args: argparse.Namespace, workers: int = 0) -> Iterator[int]:
    for batch in tensors(run, args, workers):
        yield len(batch.y)


def worker(run: ndls.Run, args: argparse.Namespace) -> Iterator[int]:
    return torch(run, args, 1)


def model(run: ndls.Run, args: argparse.Namespace) -> Iterator[int]:
    batch = next(tensors(run, args, 0))
    for _ in range(len(run.features) // args.size):
        args.step(batch.x, batch.y)
        yield len(batch.y)


def fed(run: ndls.Run, args: argparse.Namespace) -> Iterator[int]:
    for batch in tensors(run, args, 0):
        args.step(batch.x, batch.y)
        yield len(batch.y)


def single(run: ndls.Run, args: argparse.Namespace) -> Iterator[Any]:
    from torch.utils.data import DataLoader

    return iter(DataLoader(ndls.NodeRows(run), batch_size=args.size, shuffle=True, num_workers=2))


def loader(run: ndls.Run, args: argparse.Namespace) -> Iterator[int]:
    for _, y in single(run, args):
        yield len(y)


def naive(run: ndls.Run, args: argparse.Namespace) -> Iterator[int]:
    for x, y in single(run, args):
        args.step(x, y)
        yield len(y)


def rows(run: ndls.Run, args: argparse.Namespace) -> Iterator[int]:
    data = ndls.NodeRows(run)
    order = np.random.default_rng(1).permutation(len(data))
    for lo in range(0, len(order), args.size):
        pairs = [data[i] for i in order[lo : lo + args.size]]
        np.stack([x for x, _ in pairs])
        np.array([y for _, y in pairs])
        yield len(pairs)


LOADERS = {f.__name__: f for f in (read, direct, batches, torch, worker, model, fed, loader, naive, rows)}
STEPS = ("model", "fed", "naive")
TORCH = ("torch", "worker", "loader", *STEPS)


def memory() -> int:
    """Returns the bytes of this process and its children that are no pages of files."""
    me, total = os.getpid(), 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(re.findall(r"^(PPid|RssAnon|RssShmem):\s+(\d+)", status.read_text(), re.MULTILINE))
        except OSError:  # it has ended
            continue
        if int(status.parent.name) == me or int(lines.get("PPid", 0)) == me:
            total += 1024 * (int(lines.get("RssAnon", 0)) + int(lines.get("RssShmem", 0)))
    return total


def measure(args: argparse.Namespace) -> dict[str, object]:
    run = ndls.open(args.run)
    row = run.features.shape[1] * run.features.dtype.itemsize
    ndls.NodeRows(run).take([0])  # opens the files and reads the labels, which takes as long for each loader
    if args.measure in TORCH:
        importlib.import_module("torch.utils.data")
    if args.measure in STEPS:
        args.step = perceptron(run, args)
    taken = memory()
    processor = time.process_time()
    begun, n, first, most, looked = time.perf_counter(), 0, 0.0, 0, 0.0
    for some in LOADERS[args.measure](run, args):
        n += some
        now = time.perf_counter()
        first = first or now - begun
        if now - looked > 0.5:
            most, looked = max(most, memory()), now
        if now - begun > args.seconds:
            break
    took = time.perf_counter() - begun
    return {
        "what": args.measure,
        "rows": n,
        "of": len(run.features),
        "seconds": round(took, 3),
        "seconds_to_first": round(first, 3),
        "rows_per_second": round(n / took),
        "bytes_per_second": round(n * row / took),
        "processor_seconds": round(time.process_time() - processor, 3),
        "memory_before": taken,
        "memory": most,
    }


def make(folder: str, nodes: int, features: int) -> str:
    run = os.path.join(folder, "run")
    dataset = f"synthetic:nodes={nodes},edges={nodes},features=0,classes=8,seed=1"
    ndls.command("partition", progress=False, dataset=dataset, run=run, shards="none")
    ndls.command("smooth", progress=False, run=run, rule="fastrp", dimensions=features, hop_weights=1)
    return run


def forget(path: Path, warm: bool) -> None:
    """Puts a file out of the page cache, or into it."""
    descriptor = os.open(path, os.O_RDONLY)
    if warm:
        while os.read(descriptor, 1 << 20):
            pass
    else:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="run directory with smoothed rows")
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--size", type=int, default=4096, help="rows of a batch")
    parser.add_argument("--hidden", type=int, default=64, help="hidden units of the perceptron")
    parser.add_argument("--seconds", type=float, default=20, help="longest measurement of a loader")
    parser.add_argument("--only", nargs="*", choices=LOADERS, default=list(LOADERS), help="the loaders to measure")
    parser.add_argument("--warm", action="store_true", help="measure with the files in the page cache")
    parser.add_argument("--folder", help="where the rows are made, by default a temporary folder")
    parser.add_argument("--measure", choices=LOADERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args)), flush=True)
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = args.run or make(folder, args.nodes, args.features)
        for name in args.only:
            if name in TORCH and not find_spec("torch"):
                print(f"{name}: left out, torch is not installed", file=sys.stderr)
                continue
            for file in sorted(Path(path, "smoothed").glob("*.arrow")):
                forget(file, args.warm)
            options = [f"--{key}={getattr(args, key)}" for key in ("size", "hidden", "seconds")]
            subprocess.run([sys.executable, __file__, "--measure", name, "--run", path, *options], check=True)


if __name__ == "__main__":
    main()
