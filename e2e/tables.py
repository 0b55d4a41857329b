"""Tables with text ids, as pyarrow writes them, and what comes back of them:

tables.py write DIR          writes edges, nodes and labels
tables.py check DIR RUN EXPORTS
                             compares the run directory and the exports with them"""

import csv
import glob
import os
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

NODES, EDGES = 600, 3000
NAMES = [f'user {i * 7919 % 100003:05d}, "ü"' if i % 3 else f"https://example.org/{i}" for i in range(NODES)]


def check(ok, what):
    if not ok:
        sys.exit(f"tables.py: {what}")


def sql(query):
    return duckdb.sql(query).fetchall()


def write(folder):
    random = np.random.default_rng(1)
    src, dst = random.integers(0, NODES - 5, EDGES), random.integers(0, NODES - 5, EDGES)  # five have no edge
    names = pa.array(NAMES)
    os.makedirs(f"{folder}/edges/year=2020")
    for i, part in enumerate(np.array_split(np.arange(EDGES), 3)):
        t = pa.table({"from": names.take(pa.array(src[part])), "to": names.take(pa.array(dst[part])), "weightless": part})
        if i == 1:
            t = t.set_column(0, "from", t["from"].dictionary_encode())
        pq.write_table(t, f"{folder}/edges/year=2020/part-{i}.parquet", compression=["zstd", "snappy", "gzip"][i], use_dictionary=i != 2, row_group_size=700)
    features = random.normal(size=(NODES, 8)).astype("float32")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 8)
    feather.write_feather(pa.table({"key": names.cast(pa.large_string()), "x": lists}), f"{folder}/nodes.arrow", compression="uncompressed")
    with open(f"{folder}/labels.csv", "w", newline="") as f:
        rows = csv.writer(f)
        rows.writerow(["name", "topic"])
        rows.writerows([name, f"topic {i % 3}"] for i, name in enumerate(NAMES))


def verify(folder, run, exports):
    order = sorted(NAMES, key=lambda s: s.encode())
    source = f"(select least(\"from\", \"to\") u, greatest(\"from\", \"to\") v from read_parquet('{folder}/edges/*/*.parquet') where \"from\" <> \"to\")"
    edges = set(sql(f"select distinct u, v from {source}"))
    degree = dict(sql(f"with e as (select distinct u, v from {source}) select id, count(*) from (select u id from e union all select v from e) group by id"))

    for what in ("lsi", "features", "smoothed", "soft-labels", "predictions", "nodes", "edges"):
        path = f"{exports}/{what}"
        with open(f"{path}.csv", newline="") as f:
            rows = list(csv.reader(f))
        columns = ("u", "v") if what == "edges" else ("id",)
        want = [tuple(row[: len(columns)]) for row in rows[1:]]
        check(rows[0][: len(columns)] == list(columns), f"{what}.csv begins with the columns {rows[0]}")
        if what == "edges":
            check({tuple(sorted(e)) for e in want} == {tuple(sorted(e)) for e in edges} and len(want) == len(edges), "exported edges are not those of the tables")
        else:
            check([row[0] for row in want] == order, f"{what}.csv is not in order of the ids")
        parquet = pq.read_table(f"{path}.parquet")
        with pa.memory_map(f"{path}.arrow") as f:
            arrow = pa.ipc.open_file(f).read_all()
        for form, t in (("parquet", parquet), ("arrow", arrow)):
            check(all(t.schema.field(c).type == pa.string() for c in columns), f"{what}.{form} has the types {t.schema}")
            check(list(zip(*(t[c].to_pylist() for c in columns))) == want, f"the ids in {what}.{form} and in {what}.csv differ")
        named = ", ".join(columns)
        check(sql(f"select distinct typeof({columns[0]}) from '{path}.parquet'") == [("VARCHAR",)], f"DuckDB finds no text in {what}.parquet")
        check(sql(f"select {named} from '{path}.parquet'") == want, f"DuckDB finds other ids in {what}.parquet")
        array = np.load(f"{path}.npy")
        if array.dtype.names:
            got = [tuple(x.decode() for x in row) for row in zip(*(array[c] for c in columns))]
            check(got == want, f"the ids in {what}.npy and in {what}.csv differ")
    exported = dict(sql(f"select id, degree from '{exports}/nodes.parquet'"))
    check(exported == {name: degree.get(name, 0) for name in NAMES}, "degrees are not those of the tables")

    check([row[0] for row in sql(f"select id from '{run}/graph/ids.parquet'")] == order, "graph/ids.parquet is not in order of the ids")
    nodes = sql(f"select id, number, degree from '{run}/graph/nodes.parquet'")
    check(all(order[number] == id and degree.get(id, 0) == d for id, number, d in nodes) and len(nodes) == NODES, "graph/nodes.parquet has other ids, numbers or degrees")
    tables = pq.read_table(f"{run}/graph/nodes.parquet")
    check(tables.schema.field("id").type == pa.string(), f"graph/nodes.parquet has the types {tables.schema}")
    for kind in ("smoothed", "soft_labels", "predictions"):
        ids = []
        for path in sorted(glob.glob(f"{run}/{kind}/*.arrow")):
            with pa.memory_map(path) as f:
                t = pa.ipc.open_file(f).read_all()
            t.validate(full=True)
            ids += t["id"].to_pylist()
        check(sorted(ids) == sorted(NAMES), f"the ids in {kind} are others")
    print(f"{NODES} nodes with text ids, {len(edges)} edges: pyarrow {pa.__version__}, DuckDB {duckdb.__version__} and NumPy {np.__version__} agree")


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    verify(*sys.argv[2:])
