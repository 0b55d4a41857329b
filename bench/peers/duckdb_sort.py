"""DuckDB: both directions of the edges of a Parquet file, distinct, in order of destination and source, to Parquet."""

import argparse
from pathlib import Path

import duckdb

from peer import Phases, line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", required=True)
    parser.add_argument("--dir", type=Path, required=True, help="for temporary files and the result")
    parser.add_argument("--memory", type=int, required=True, help="memory_limit in bytes")
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    phases, out = Phases(), args.dir / "sorted.parquet"
    db = duckdb.connect(
        config={"memory_limit": f"{args.memory}B", "threads": args.threads, "temp_directory": str(args.dir / "duckdb")}
    )
    with phases("sort"):
        (rows,) = db.execute(
            """COPY (SELECT DISTINCT dst, src
                FROM (SELECT src, dst FROM read_parquet($1) UNION ALL SELECT dst, src FROM read_parquet($1))
                WHERE src <> dst ORDER BY dst, src)
                TO '%s' (FORMAT parquet)""" % str(out).replace("'", "''"),
            [args.edges],
        ).fetchone()
    line(version=f"DuckDB {duckdb.__version__}", seconds=phases.seconds, edges=rows)


if __name__ == "__main__":
    main()
