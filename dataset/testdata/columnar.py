"""Writes Parquet and Arrow files with columns of every type, for a test."""
import datetime
import decimal
import os
import sys
import uuid

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

out = sys.argv[1]
D = decimal.Decimal


def at(name):
    return os.path.join(out, name)


def parquet(name, options=None, **columns):
    pq.write_table(pa.table(columns), at(name), **(options or {}))


src, dst = pa.array([0, 1, 2]), pa.array([1, 2, 0])
with open(at("a.txt"), "w") as f:
    f.write("0 1\n1 2\n2 0\n")
db = duckdb.connect()
db.sql(f"copy (select 0 src, 1 dst, 0.25::decimal(10,2) w) to '{at('weight.parquet')}'")
as_integers = {"store_decimal_as_integer": True}
quarter = pa.array([D("0.25"), D("-1.50"), D("3.00")], pa.decimal128(10, 2))
parquet("decimals.parquet", as_integers, id=src, x=quarter)
parquet("wide.parquet", id=src, x=quarter.cast(pa.decimal256(60, 9)))
parquet("ids92.parquet", as_integers, src=pa.array([D(0), D(1), D(2)], pa.decimal128(9, 2)), dst=pa.array([D(1), D(2), D(0)], pa.decimal128(9, 2)))
parquet("fraction.parquet", src=pa.array([D(0), D("1.5"), D(2)], pa.decimal128(9, 2)), dst=dst)
parquet("u64.parquet", id=src, x=pa.array([2**63, 2**63 + 1, 2**63 + 2], pa.uint64()))
stamps = pa.array([datetime.datetime(2020, 1, 1)] * 3, pa.timestamp("us"))
parquet("stamps.parquet", src=stamps, dst=dst, id=src)
parquet("moments.parquet", id=src, t=stamps, d=pa.array([datetime.date(1970, 1, 3)] * 3), x=pa.array([1.0, 2, 3]))
parquet("d180.parquet", src=pa.array([D(5), D(6)], pa.decimal128(18, 0)), dst=pa.array([D(6), D(7)], pa.decimal128(18, 0)))
parquet("d380.parquet", src=pa.array([D(5), D(6)], pa.decimal128(38, 0)), dst=pa.array([D(6), D(2**64 - 1)], pa.decimal128(38, 0)))
db.sql(f"copy (select sum(i) src, sum(i+1) dst from range(3) t(i) group by i order by i) to '{at('huge.parquet')}'")
db.sql(f"copy (select '00000000-0000-0000-0000-00000000000a'::uuid src, '00000000-0000-0000-0000-00000000000b'::uuid dst) to '{at('uuid_duckdb.parquet')}'")
ids = [uuid.UUID(int=10).bytes, uuid.UUID(int=11).bytes]
parquet("uuid_pyarrow.parquet", src=pa.array(ids[:1], pa.uuid()), dst=pa.array(ids[1:], pa.uuid()))
parquet("floats.parquet", src=pa.array([0.0, 1, 2]), dst=pa.array([1.0, 2, 0], pa.float32()))
parquet("float16.parquet", id=src, src=src, dst=dst, h=pa.array(np.array([0.5, 1, -2], np.float16)))
for name, bad in (("nan", float("nan")), ("half", 1.5), ("large", 2.0**53 + 2)):
    parquet(f"float_{name}.parquet", src=pa.array([0.0, bad, 2]), dst=dst)
db.sql(f"copy (select i src, (i+1)%3 dst, {{'a': i}}::variant v from range(3) t(i)) to '{at('variant.parquet')}'")
t = pa.table({"src": src, "dst": dst})
pq.write_table(t, at("split.parquet"), use_dictionary=False, use_byte_stream_split=True)
pq.write_table(t, at("delta.parquet"), use_dictionary=False, column_encoding={"src": "DELTA_BINARY_PACKED", "dst": "DELTA_BINARY_PACKED"}, data_page_version="2.0")
pq.write_table(t, at("lz4.parquet"), compression="lz4")
with pa.ipc.new_stream(at("stream.arrow"), t.schema) as w:
    w.write_table(t)
pl.DataFrame({"src": ["a longer text than fits a view", "b"], "dst": ["b", "c"]}).write_ipc(at("views.arrow"))
pa.feather = __import__("pyarrow.feather", fromlist=["x"])
pa.feather.write_feather(t, at("edges.feather"), compression="lz4")
os.mkdir(at("parts"))
pq.write_table(t, at("parts/a.parquet"))
open(at("parts/b.parquet"), "w").close()
pq.write_table(pa.Table.from_arrays([src, dst, dst], names=["src", "dst", "dst"]), at("twice.parquet"))
pq.write_table(pa.Table.from_arrays([src, dst, dst], names=["src", "DST", "Dst"]), at("alike.parquet"))
with pa.ipc.new_file(at("twice.arrow"), pa.schema([("src", pa.int64()), ("dst", pa.int64()), ("dst", pa.int64())])) as w:
    w.write_table(pa.Table.from_arrays([src, dst, dst], names=["src", "dst", "dst"]))
vector = pa.struct([("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))])
vectors = pa.array([{"type": 0, "size": 3, "indices": [2], "values": [0.5]}, {"type": 1, "size": None, "indices": None, "values": [1.0, 2.0, 3.0]}, {"type": 0, "size": 3, "indices": [], "values": []}], vector)
parquet("vectors.parquet", id=src, v=vectors)
with pa.ipc.new_file(at("vectors.arrow"), pa.schema([("id", pa.int64()), ("v", vector)])) as w:
    w.write_table(pa.table({"id": src, "v": vectors}))
for name, row in (("null", None), ("empty", []), ("hole", [1.0, None]), ("short", [1.0])):
    lists = pa.array([[1.0, 2.0], row, [3.0, 4.0]], pa.list_(pa.float32()))
    parquet(f"list_{name}.parquet", id=src, x=lists)
    with pa.ipc.new_stream(at(f"list_{name}.arrow"), pa.schema([("id", pa.int64()), ("x", pa.list_(pa.float32()))])) as w:
        w.write_table(pa.table({"id": src, "x": lists}))
parquet("null.parquet", id=src, x=pa.array([1.0, None, 3.0]))
parquet("first.parquet", id=src, x=pa.array([None, [], [3.0, 4.0]], pa.list_(pa.float32())))
labelled = pa.table({"node": pa.array([2, 0, 1]), "topic": pa.array(["b", "a", "b"]).dictionary_encode(), "train": pa.array([True, True, False]), "when": stamps, "split": pa.array(["train", "valid", "test"])})
pq.write_table(labelled, at("labels.parquet"))
with pa.ipc.new_file(at("labels.arrow"), labelled.schema) as w:
    w.write_table(labelled)
parquet("rowlabels.parquet", y=pa.array([3, 1, 1]))
parquet("inside.parquet", id=src, s=pa.array([{"x": 1.5, "l": [1.0, 2.0]}, {"x": 2.5, "l": [3.0, 4.0]}, {"x": 3.5, "l": [5.0, 6.0]}]))
parquet("bytes.parquet", src=pa.array([b"\xff\xfe", b"a"]), dst=pa.array([b"b", b"c"]))
parquet("bools.parquet", id=src, x=pa.array([True, False, True]))
