"""Opens a run directory and its exports with pyarrow, DuckDB and NumPy, and
compares what they see: readers.py RUN EXPORTS."""

import csv
import glob
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

run, exports = sys.argv[1:3]


def check(ok, what):
    if not ok:
        sys.exit(f"readers.py: {what}")


def table(name):
    """The rows of every format of an export as one float matrix each."""
    with open(f"{exports}/{name}.csv") as f:
        rows = list(csv.reader(f))[1:]
    word = {"true": 1.0, "false": 0.0, "": 0.0, "train": 1.0, "valid": 2.0, "test": 3.0}
    text = np.array([[word[x] if x in word else float(x) for x in row] for row in rows])

    def numbers(a):
        a = np.asarray(a)
        if a.dtype == bool:
            return a.astype(float)[:, None]
        if a.dtype.kind in "SUO" and not isinstance(a[0], np.ndarray):
            return np.array([word[x.decode() if isinstance(x, bytes) else x] for x in a])[:, None]
        if a.dtype == object:
            a = np.stack(a)
        return a.astype(float).reshape(len(a), -1)

    array = np.load(f"{exports}/{name}.npy")
    if array.dtype.names:
        array = np.hstack([numbers(array[c]) for c in array.dtype.names])
    elif name != "edges":
        # A plain matrix: row i belongs to the i-th smallest id.
        array = np.hstack([text[:, :1], array])
    parquet = pq.read_table(f"{exports}/{name}.parquet")
    with pa.memory_map(f"{exports}/{name}.arrow") as f:
        arrow = pa.ipc.open_file(f).read_all()
        arrow = np.hstack([numbers(c.to_numpy(zero_copy_only=False)) for c in arrow.columns])
    parquet = np.hstack([numbers(c.to_numpy()) for c in parquet.columns])
    for other, form in ((array, "npy"), (parquet, "parquet"), (arrow, "arrow")):
        check(other.shape == text.shape, f"{name}: {form} has shape {other.shape}, csv {text.shape}")
        check(np.allclose(other, text, rtol=1e-6, atol=0), f"{name}: {form} and csv differ")
    check((np.diff(text[:, 0]) >= 0).all(), f"{name} is not in order of id")
    return text


def sql(query):
    return duckdb.sql(query).fetchall()


lsi, nodes, edges = table("lsi"), table("nodes"), table("edges")
for name in ("features", "smoothed", "soft-labels", "predictions"):
    check(len(table(name)) == len(nodes), f"{name} has not one row a node")

shards = f"read_parquet('{run}/graph/edges/*.parquet')"
check(sql(f"select count(*) from {shards}") == [(2 * len(edges),)], "edge shards and exported edges differ in number")
check(sql(f"select count(*) from {shards} where src = dst") == [(0,)], "a self-loop in the shards")
degrees = sql(
    f"select count(*) from '{run}/graph/nodes.parquet' n"
    f" left join (select dst, count(*) d from {shards} group by dst) e on n.node = e.dst"
    " where n.degree <> coalesce(e.d, 0)"
)
check(degrees == [(0,)], "degrees of the node table and of the shards differ")
check(sql(f"select sum(k), count(*) from read_parquet('{run}/lsi/*.parquet')") == [(lsi[:, 1].sum(), len(lsi))], "K table and export differ")

# Every Parquet file of the run: as many rows, and the same sums, in both.
parquet = sorted(glob.glob(f"{run}/**/*.parquet", recursive=True))
for path in parquet:
    t = pq.read_table(path)
    check([(t.num_rows,)] == sql(f"select count(*) from '{path}'") and t.num_rows > 0, f"{path}: rows in DuckDB and pyarrow differ")
    for name in t.column_names:
        if pa.types.is_integer(t.schema.field(name).type):
            total = int(np.sum(t[name].to_numpy().astype(object)))
            check(total == int(sql(f"select sum({name}) from '{path}'")[0][0]), f"{path}: sum of {name} differs")

# Every Arrow file of the run, and DuckDB on top of it.
arrow = 0
for kind, column, name in (("smoothed", "feature", "smoothed"), ("soft_labels", "probability", "soft-labels"), ("predictions", "probability", "predictions")):
    parts = []
    for path in sorted(glob.glob(f"{run}/{kind}/*.arrow")):
        with pa.memory_map(path) as f:
            parts.append(pa.ipc.open_file(f).read_all())
        parts[-1].validate(full=True)
        arrow += 1
    t = pa.concat_tables(parts)
    want = table(name)
    values = t[column].combine_chunks().flatten().to_numpy().reshape(t.num_rows, -1)
    order = np.argsort(t["id"].to_numpy())
    skip = 2 if name == "predictions" else 1
    check(np.allclose(values[order], want[:, skip:], rtol=1e-6, atol=0), f"{kind} and its export differ")
    total = sql(f"select count(*), sum(id), sum(list_sum({column}::double[])) from t")[0]
    check(total[:2] == (len(want), int(want[:, 0].sum())), f"{kind}: rows or ids in DuckDB differ")
    check(abs(total[2] - values.astype(float).sum()) <= 1e-9 * abs(total[2]), f"{kind}: sum in DuckDB differs")

# Hops: NumPy maps the array, and PyTorch, where it is installed, takes rows of it; Arrow and
# Parquet have a list for each hop.
stack = np.load(f"{exports}/hops.npy", mmap_mode="r")
features = np.load(f"{exports}/features.npy")
check(stack.shape == (len(nodes), 3, features.shape[1]) and stack.dtype == np.float32, f"hops have shape {stack.shape}")
check(np.array_equal(stack[:, 0], features), "hop 0 is not the features")
parts = [pa.ipc.open_file(pa.memory_map(path)).read_all() for path in sorted(glob.glob(f"{run}/hops/*.arrow"))]
arrow += len(parts)
t = pa.concat_tables(parts)
order = np.argsort(t["id"].to_numpy())
for form, t, order in (("run", t, order), ("arrow", pa.ipc.open_file(f"{exports}/hops.arrow").read_all(), slice(None)), ("parquet", pq.read_table(f"{exports}/hops.parquet"), slice(None))):
    for k, name in enumerate(("hop_0", "hop_1", "hop_3")):
        values = t[name].combine_chunks().flatten().to_numpy().reshape(t.num_rows, -1)[order]
        check(np.array_equal(values, stack[:, k]), f"{name}: {form} and npy differ")
try:
    import torch
except ImportError:
    torch = None
if torch:
    rows = torch.from_numpy(stack[[0, len(stack) - 1]])
    check(rows.shape == (2, 3, features.shape[1]) and bool(torch.isfinite(rows).all()), "PyTorch reads other rows")

print(f"{len(parquet)} Parquet and {arrow} Arrow files, {len(nodes)} nodes, {len(edges)} edges: pyarrow {pa.__version__},"
      f" DuckDB {duckdb.__version__} and NumPy {np.__version__} agree with ndls export")
