"""Writes Parquet and Arrow files with every encoding, compression and type that pyarrow, Polars and DuckDB write.

The first argument is a folder, the second one a number of rows.
"""
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

folder = sys.argv[1]
n = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
random = np.random.default_rng(1)


def at(name):
    return os.path.join(folder, name)


def each(f):
    return [f(i) for i in range(n)]


counted = np.arange(n, dtype=np.int64)
base = pa.table(
    {
        "i": pa.array(random.integers(-(2**62), 2**62, n)),
        "s": pa.array(counted % 97),
        "t": pa.array(each(lambda i: "node-%05d" % (i * 7 % n))),
        "f": pa.array(random.normal(size=n)),
        "g": pa.array(random.normal(size=n)).cast(pa.float32()),
        "n": pa.array(each(lambda i: None if i % 3 == 0 else i), pa.int64()),
        "b": pa.array(each(lambda i: i % 5 == 0)),
        "i32": pa.array(counted % 97).cast(pa.int32()),
    }
)
for codec in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
    for version in ["1.0", "2.0"]:
        pq.write_table(base, at(f"pyarrow_{codec}_v{version[0]}.parquet"), compression=codec, data_page_version=version, data_page_size=4096, row_group_size=1700)
pq.write_table(base.drop_columns(["t", "b", "n"]), at("pyarrow_split.parquet"), use_dictionary=False, use_byte_stream_split=True)
deltas = {"i": "DELTA_BINARY_PACKED", "s": "DELTA_BINARY_PACKED", "n": "DELTA_BINARY_PACKED", "i32": "DELTA_BINARY_PACKED", "t": "DELTA_BYTE_ARRAY", "f": "PLAIN", "g": "BYTE_STREAM_SPLIT", "b": "RLE"}
pq.write_table(base, at("pyarrow_delta.parquet"), use_dictionary=False, column_encoding=deltas)
pq.write_table(base.select(["t"]), at("pyarrow_lengths.parquet"), use_dictionary=False, column_encoding={"t": "DELTA_LENGTH_BYTE_ARRAY"})
pq.write_table(base, at("pyarrow_checksums.parquet"), write_page_checksum=True)


def multiples(of):
    return each(lambda i: decimal.Decimal(of) * i)


def ragged(i):
    return [[1.0, 2.0, float(i)], [float(i), None, 2.0], [], None][i % 7 if i % 7 < 4 else 0]


types = pa.table(
    {
        "dec92": pa.array(multiples("1.00"), pa.decimal128(9, 2)),
        "dec102": pa.array(multiples("0.25"), pa.decimal128(10, 2)),
        "dec180": pa.array(multiples("1"), pa.decimal128(18, 0)),
        "dec380": pa.array(multiples("12345678901234567890123"), pa.decimal128(38, 0)),
        "dec76": pa.array(multiples("-1.5"), pa.decimal256(76, 5)),
        "f16": pa.array(counted.astype(np.float16) % 100),
        "u64": pa.array(counted.astype(np.uint64) + 2**63),
        "u32": pa.array(counted.astype(np.uint32) + 2**31),
        "u8": pa.array((counted % 256).astype(np.uint8)),
        "i8": pa.array((counted % 256 - 128).astype(np.int8)),
        "ts": pa.array(each(lambda i: datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=i)), pa.timestamp("us")),
        "d": pa.array(each(lambda i: datetime.date(2020, 1, 1) + datetime.timedelta(days=i % 900))),
        "tm": pa.array(each(lambda i: datetime.time(i % 24)), pa.time64("us")),
        "bin": pa.array(each(lambda i: b"b%d" % i)),
        "fixed": pa.array(each(lambda i: b"%016d" % i), pa.binary(16)),
        "null": pa.nulls(n),
        "l": pa.array(each(ragged), pa.list_(pa.float32())),
        "ll": pa.array(each(ragged), pa.large_list(pa.float64())),
        "fl": pa.array(each(lambda i: [1.0, 2.0, float(i)]), pa.list_(pa.float64(), 3)),
        "li": pa.array(each(lambda i: list(range(i % 5))), pa.list_(pa.uint16())),
        "st": pa.array(each(lambda i: {"x": i, "y": str(i)} if i % 4 else None)),
        "m": pa.array(each(lambda i: [("k", i)]), pa.map_(pa.string(), pa.int64())),
        "dict": pa.array(each(lambda i: "c%d" % (i % 9))).dictionary_encode(),
        "ls": pa.array([["a"]] * n),
        "large": pa.array(each(lambda i: "large %d" % i), pa.large_string()),
    }
)
pq.write_table(types, at("types.parquet"), data_page_size=4096)
pq.write_table(types, at("types_integers.parquet"), store_decimal_as_integer=True, data_page_version="2.0")
pq.write_table(pa.table({"id": pa.array(each(lambda i: uuid.UUID(int=i).bytes), pa.uuid())}), at("uuid.parquet"))
vector = pa.struct([("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))])


def vectors(i):
    if i % 2:
        return {"type": 0, "size": 5, "indices": [i % 4, 4], "values": [1.0, float(i)]}
    return {"type": 1, "size": None, "indices": None, "values": [1.0, 2.0, 3.0, 4.0, float(i)]}


ml = pa.table({"id": pa.array(counted), "v": pa.array(each(vectors), vector)})
pq.write_table(ml, at("vectors.parquet"))
frame = pl.DataFrame(
    {
        "i": counted,
        "s": each(lambda i: ("a-rather-long-string-%d" if i % 2 else "%d") % i),
        "f": counted / 3,
        "c": pl.Series(["x", "y"] * (n // 2)).cast(pl.Categorical),
        "l": [[1.0, 2.0]] * n,
        "arr": pl.Series([[1.0, 2.0]] * n, dtype=pl.Array(pl.Float32, 2)),
        "b": [True, False] * (n // 2),
        "dt": [datetime.datetime(2020, 1, 1)] * n,
        "dec": pl.Series(each(lambda i: decimal.Decimal(i) / 4), dtype=pl.Decimal(12, 2)),
        "sn": each(lambda i: None if i % 3 else "another long string %d" % i),
    }
)
frame.write_parquet(at("polars.parquet"))
frame.write_parquet(at("polars_small.parquet"), row_group_size=700, data_page_size=3000, compression="lz4")
for compression in ["uncompressed", "lz4", "zstd"]:
    frame.write_ipc(at(f"polars_{compression}.arrow"), compression=compression)
frame.write_ipc_stream(at("polars_stream.arrow"))
for name, compression in [("none", None), ("lz4", "lz4"), ("zstd", "zstd")]:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(at(f"types_{name}.arrow"), types.schema, options=options) as w:
        w.write_table(types, max_chunksize=1234)
    with pa.ipc.new_stream(at(f"base_{name}_stream.arrow"), base.schema, options=options) as w:
        w.write_table(base, max_chunksize=1234)
with pa.ipc.new_stream(at("vectors.arrow"), ml.schema) as w:
    w.write_table(ml)
# A dictionary that is replaced, and one that is added to.
parts = [pa.record_batch({"c": pa.array(values).dictionary_encode()}) for values in (["a", "b"], ["a", "b", "c"], ["d", "e"])]
for deltas in (False, True):
    with pa.ipc.new_stream(at(f"dictionaries_{deltas}.arrow"), parts[0].schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)) as w:
        for part in parts:
            w.write_batch(part)
sliced = types.select(["l", "ll", "fl", "dict", "large", "ts", "u8", "st"]).slice(n // 3, n // 3)
with pa.ipc.new_file(at("sliced.arrow"), sliced.schema) as w:
    w.write_table(sliced)
query = """select i src, (i*7)%5000 dst, 0.25::decimal(10,2) w, (i::hugeint)*2 h, uuid() u, i::utinyint%10 l, 'n'||i name, [i::float,2.0] fl,
    [1.0,i]::float[2] fa, i%2=0 b, {'a':i,'b':'x'} st, current_date d, interval 1 day iv, i::ubigint ub, (i/8)::decimal(38,5) wide from range(0,250) t(i)"""
db = duckdb.connect()
for version in ["V1", "V2"]:
    for codec in ["snappy", "zstd", "lz4_raw", "uncompressed", "gzip", "brotli"]:
        db.sql(f"copy ({query}) to '{at(f'duckdb_{version}_{codec}.parquet')}' (parquet_version {version}, codec '{codec}')")
db.sql(f"copy (select 1 src, 2 dst, 42::variant v) to '{at('duckdb_variant.parquet')}'")
