"""Reads every file of folders of others, and holds each column that ndls reads against another reader.

    python corpora.py NDLS FOLDER… [--list FILE]

Two columns are read as the ends of edges, so that the node table has their values. pyarrow and DuckDB are the judges of Parquet, pyarrow of Arrow, DuckDB of CSV
and JSON. What ndls refuses is listed with the reason: it has to name the file, must not call a
file damaged that a judge reads, and ndls must not crash or take more memory than it was given.
"""

import argparse
import collections
import concurrent.futures
import decimal
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import uuid

import duckdb
import numpy
import pyarrow
import pyarrow.ipc
import pyarrow.parquet

SPOILED = re.compile(r"bad_data|corrupt|broken|encrypt|malformed|invalid|mismatch")


def columns(path):
    """Returns the names of columns, and a function that gives the values of one; None where no judge reads the file."""
    end = path.name.removesuffix(".gz").rsplit(".", 1)[-1]
    if end in ("parquet", "pq"):
        try:
            file = pyarrow.parquet.ParquetFile(path)
            names = file.schema_arrow.names
        except Exception:
            names = None
        if names is not None:
            return names, lambda c: by_pyarrow_or_duckdb(path, c)
        try:
            return [r[0] for r in duckdb.sql(f"describe from read_parquet('{path}')").fetchall()], lambda c: by_duckdb(path, c)
        except Exception:
            return None
    if end in ("arrow", "feather", "ipc"):
        try:
            table = pyarrow.ipc.open_file(path).read_all()
        except Exception:
            try:
                table = pyarrow.ipc.open_stream(path).read_all()
            except Exception:
                return None
        return table.column_names, lambda c: flat(table.column(c))
    if end in ("csv", "tsv", "txt"):
        try:
            relation = duckdb.connect().sql(
                f"from read_csv('{path}', header=true, all_varchar=true, delim=',', quote='\"', escape='\"', strict_mode=true, null_padding=false)"
            )
            names = relation.columns
            return names, lambda c: [r[0] for r in relation.project(f'"{c}"').fetchall()]
        except Exception:
            return None
    return None


def by_pyarrow_or_duckdb(path, c):
    try:
        return flat(pyarrow.parquet.read_table(path, columns=[c], partitioning=None).column(0))
    except Exception:
        return by_duckdb(path, c)


def by_duckdb(path, c):
    quoted = c.replace('"', '""')
    return [r[0] for r in duckdb.connect().sql(f"""select "{quoted}" from read_parquet('{path}', hive_partitioning=false)""").fetchall()]


def flat(column):
    return column.to_pylist()


def canonical(v):
    """Returns an id as ndls has it, or raises ValueError where it can be none."""
    if isinstance(v, bool) or v is None:
        raise ValueError("no id")
    if isinstance(v, int | numpy.integer):
        if not -(2**63) <= v < 2**64:
            raise ValueError("too large")
        return int(v)
    if isinstance(v, uuid.UUID):
        return str(v)
    if isinstance(v, decimal.Decimal | float | numpy.floating):
        if isinstance(v, float) and not math.isfinite(v) or v != int(v):
            raise ValueError("not whole")
        return int(v)
    if isinstance(v, bytes):
        v = v.decode()  # old writers do not say that bytes are text; UnicodeDecodeError is a ValueError
    if isinstance(v, str):
        if not v:
            raise ValueError("empty")
        return v
    raise ValueError(f"a {type(v).__name__}")


def escape(text):
    return re.sub(r"[%?&#,*\[\]{}]", lambda m: f"%{ord(m[0]):02X}", text)


def uri(path, c, d):
    return f"table:{escape(str(path))}?src={escape(c)}&dst={escape(d)}"


def look(program, path, folder, c, d):
    """Returns (state, reason): read with the ids, refused or wrong."""
    run = folder / re.sub(r"\W", "_", f"{path}-{c}-{d}")[-120:]
    try:
        done = subprocess.run(
            [program, "partition", "--quiet", "--memory", "256MiB", "--threads", "1", "--run", str(run), "--dataset", uri(path, c, d)],
            capture_output=True,
            timeout=120,
        )
    except subprocess.TimeoutExpired:
        return "wrong", "takes more than two minutes"
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode < 0 or re.search(r"^(panic|fatal error|goroutine \d+)", said, re.M):
        return "wrong", f"crashes with {done.returncode}: {said[:600]}"
    if done.returncode:
        reason = said.splitlines()[-1] if said else ""
        if not reason:
            return "wrong", f"status {done.returncode} without a word"
        return "refused", reason.replace(str(path), path.name)
    try:
        ids = set(pyarrow.parquet.read_table(run / "graph" / "nodes.parquet", columns=["id"]).column("id").to_pylist())
    except UnicodeDecodeError as why:
        return "wrong", f"is written as text that is no UTF-8: {why}"
    shutil.rmtree(run)
    return "read", ids


def one(program, path, folder, most):
    """Returns rows (state, column, reason)."""
    spoiled = SPOILED.search(str(path))
    known = columns(path)
    if known is None:
        state, reason = look(program, path, folder, "src", "dst")
        if state == "read":
            return [("unjudged", "", "read by ndls, and by no judge")]
        return [(state, "", reason)]
    names, values = known
    names = [c for c in names if "\0" not in c]  # no argument of a program can hold it
    rows = []
    partner = None  # a column that is read
    for at, c in enumerate(names[:most]):
        if partner is None or partner == c:
            d = names[(at + 1) % len(names)]
        else:
            d = partner
        state, reason = look(program, path, folder, c, d)
        if state == "read":
            partner = partner or c
        elif state == "refused":
            if "damaged" in reason and not spoiled:
                try:
                    values(c), values(d)
                    state, reason = "wrong", "is called damaged, and a judge reads it: " + reason
                except Exception:
                    pass
        if state != "read":
            rows.append((state, c, reason))
            continue
        try:
            right = {canonical(v) for v in [*values(c), *values(d)]}
        except ValueError as why:
            rows.append(("unjudged" if ".csv" in path.name else "wrong", c, f"is read as ids, and holds {why}: {sorted(map(str, reason))[:4]}"))
            continue
        except Exception as why:
            rows.append(("unjudged", c, f"read by ndls, and by no judge: {str(why)[:80]}"))
            continue
        if ".csv" in path.name or any(isinstance(v, str) for v in right):
            right, reason = {str(v).strip() for v in right}, {str(v).strip() for v in reason}
        if right == reason:
            rows.append(("read", c, f"{len(right)} ids"))
        else:
            rows.append(("wrong", c, f"has other values: {sorted(map(str, reason - right))[:4]} in place of {sorted(map(str, right - reason))[:4]}"))
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ndls")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--list", type=pathlib.Path, help="where the list of what is read and refused goes")
    parser.add_argument("--refused", action="store_true", help="count why columns are refused")
    parser.add_argument("--columns", type=int, default=24, help="of each file at most")
    options = parser.parse_args()
    files = sorted(
        p
        for f in options.folders
        for p in f.rglob("*")
        if p.is_file() and re.search(r"\.(parquet|pq|arrow|feather|ipc|csv|tsv)(\.gz|\.zst)?$", p.name)
    )
    found = collections.Counter()
    lines, wrong = [], []
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [(p, pool.submit(one, options.ndls, p, pathlib.Path(scratch), options.columns)) for p in files]
        for path, job in jobs:
            for state, c, reason in job.result():
                found[state] += 1
                lines.append(f"{state}\t{path}\t{c}\t{reason}")
                if state == "wrong":
                    wrong.append(f"WRONG {path} column {c!r}: {reason}")
    if options.refused:
        reasons = collections.Counter(
            re.sub(r"ndls: \S+( (row|line) \d+)?:?", "", re.sub(r'"[^"]*"', "…", line.split("\t")[3]))[:110]
            for line in lines
            if line.startswith("refused")
        )
        print("\n".join(f"{n:5} refused: {reason}" for reason, n in reasons.most_common()))
    if options.list:
        options.list.write_text("\n".join(lines) + "\n")
    print("\n".join(wrong))
    print(f"{len(files)} files: " + ", ".join(f"{n} columns {state}" for state, n in sorted(found.items())))
    sys.exit(bool(wrong) or not files)


main()
