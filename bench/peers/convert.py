"""Write the edges of a graph of ndls generate as Parquet, gzipped CSV and lines for sort: convert.py GRAPH OUT FILE..."""

import argparse
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

FORMATS = ("edges.parquet", "edges.csv.gz", "edges.txt")
# BATCH is the number of edges written at a time.
BATCH = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("files", nargs="+", choices=FORMATS)
    args = parser.parse_args()
    with np.load(args.graph / "raw" / "data.npz") as arrays:
        edges = arrays["edge_index"]
    schema = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
    batches = [
        pa.record_batch([pa.array(end[first : first + BATCH]) for end in edges], schema=schema) for first in range(0, edges.shape[1], BATCH)
    ]
    if "edges.parquet" in args.files:
        with parquet.ParquetWriter(args.out / "edges.parquet", schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    if "edges.csv.gz" in args.files:
        with pa.CompressedOutputStream(str(args.out / "edges.csv.gz"), "gzip") as stream, csv.CSVWriter(stream, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    if "edges.txt" in args.files:
        pairs = pa.Table.from_batches(batches, schema)
        text = str(args.out / "edges.txt").replace("'", "''")
        # Both directions, destination first, padded so that the order of bytes is that of numbers.
        duckdb.sql("SET threads = 1")
        duckdb.sql(
            f"""COPY (SELECT format('{{:010d}} {{:010d}}', dst, src) FROM pairs WHERE src <> dst
                UNION ALL SELECT format('{{:010d}} {{:010d}}', src, dst) FROM pairs WHERE src <> dst)
                TO '{text}' (FORMAT csv, HEADER false)"""
        )


if __name__ == "__main__":
    main()
