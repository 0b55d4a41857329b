"""Compares what ndls reads with what the library says that wrote the file.

A kind of input is a function that writes files into a folder and returns a Case. The tables of
a case, as the library reads them back, say which nodes, edges, weights, features, labels and
splits an import has to give. A case that has to be refused says which words the message has.
"""

import dataclasses
import decimal
import json
import math
import pathlib
import re
import subprocess
import uuid

import numpy
import pyarrow.parquet

KINDS = []


def kind(name):
    """Registers a function that writes files into a folder and returns a Case."""

    def register(write):
        KINDS.append((name, write))
        return write

    return register


def add(what, write, /, *args, **keywords):
    """Registers write(folder, *args, **keywords)."""
    KINDS.append((what, lambda folder: write(folder, *args, **keywords)))


@dataclasses.dataclass
class Case:
    """What an import of uri has to give: columns are dicts of name to list, or None."""

    uri: str
    edges: dict | None = None  # src, dst, and weight
    nodes: dict | None = None  # id, and features (lists), label, split
    refused: tuple = ()  # regular expressions that the message has; status is not 0
    warned: tuple = ()  # regular expressions that the notes of inspect have
    directed: bool = False
    extra: tuple = ()  # further options of partition


class Wrong(Exception):
    """Says what differs."""


def value(v):
    """Returns an id or a label as ndls has it: whole numbers as int, all else as text."""
    if isinstance(v, uuid.UUID):
        return str(v)
    if isinstance(v, decimal.Decimal | float | numpy.floating):
        if v != int(v):
            raise ValueError(f"{v} is not whole")
        return int(v)
    if isinstance(v, int | numpy.integer | numpy.bool_):
        return int(v)
    return str(v)


def missing(v):
    return v is None or isinstance(v, float | numpy.floating) and math.isnan(v)


def call(program, *args):
    """Runs ndls and returns status, stdout and stderr. No run may crash."""
    done = subprocess.run([program, *args], capture_output=True, text=True, errors="replace", timeout=120)
    if done.returncode < 0 or re.search(r"^(panic|fatal error|goroutine \d+)", done.stderr, re.M):
        raise Wrong(f"{args[0]} crashed with {done.returncode}: {done.stderr[:2000]}")
    return done


def check(program, case, folder):
    """Runs inspect and partition of a case, and returns what was said; raises Wrong."""
    run = folder / "run"
    options = ["--dataset", case.uri, "--memory", "256MiB"]
    seen = call(program, "inspect", "--json", *options)
    done = call(program, "partition", "--quiet", "--run", str(run), *options, "--normalize", "none", *case.extra)
    if case.refused:
        for verb, result in (("inspect", seen), ("partition", done)):
            if result.returncode == 0:
                raise Wrong(f"{verb} takes it")
            for words in case.refused:
                if not re.search(words, result.stderr):
                    raise Wrong(f"{verb} does not say {words!r}: {result.stderr.strip()[-600:]}")
            if "damaged" in result.stderr and not any("damaged" in words for words in case.refused):
                raise Wrong(f"{verb} calls a good file damaged: {result.stderr.strip()[-600:]}")
        if (run / "graph" / "nodes.parquet").exists():
            raise Wrong("a refused import has a node table")
        return seen.stderr.strip().splitlines()[-1]
    if seen.returncode or done.returncode:
        raise Wrong(f"refused: inspect {seen.returncode}, partition {done.returncode}: {(done.stderr or seen.stderr).strip()[-800:]}")
    notes = json.loads(seen.stdout.splitlines()[-1]).get("notes") or []
    said = "\n".join([n["text"] for n in notes] + [seen.stderr, done.stderr])
    for words in case.warned:
        if not re.search(words, said):
            raise Wrong(f"no note says {words!r}; the notes are {said!r}")
    compare(program, case, run)
    return "; ".join(n["text"] for n in notes if n["warning"])


def compare(program, case, run):
    """Holds the run directory against the tables of the case."""
    summary = json.loads((run / "graph" / "summary.json").read_text())
    table = pyarrow.parquet.read_table(run / "graph" / "nodes.parquet").to_pydict()
    ids = dict(zip(table["node"], table["id"], strict=True))

    expected = {value(v) for end in ("src", "dst") for v in (case.edges or {}).get(end, [])}
    if case.nodes:
        expected = {value(v) for v in case.nodes["id"]} | (set() if case.nodes.get("all") else expected)
    if any(isinstance(v, str) for v in expected):
        expected = {str(v) for v in expected}
    text = any(isinstance(v, str) for v in expected)

    def name(v):
        return str(value(v)) if text else value(v)

    if set(ids.values()) != expected:
        raise Wrong(f"ids are {short(ids.values())}, and should be {short(expected)}")

    weight = summary.get("weighted", False)
    found = {}
    for part in sorted((run / "graph" / "edges").glob("*.parquet")):
        rows = pyarrow.parquet.read_table(part).to_pydict()
        for at, (u, v) in enumerate(zip(rows["src"], rows["dst"], strict=True)):
            ends = (ids[u], ids[v]) if case.directed else tuple(sorted((ids[u], ids[v])))
            found[ends] = rows["weight"][at] if weight else 1
    right = {}
    for at, (u, v) in enumerate(zip(case.edges["src"], case.edges["dst"], strict=True)):
        ends = (name(u), name(v)) if case.directed else tuple(sorted((name(u), name(v))))
        if ends[0] != ends[1]:
            right[ends] = float(numpy.float32(case.edges["weight"][at])) if "weight" in case.edges else 1
    if found != right:
        raise Wrong(f"edges are {short(found.items())}, and should be {short(right.items())}")
    if not case.nodes:
        return

    numbers = dict(zip(table["id"], table["node"], strict=True))
    if "label" in case.nodes:
        classes = summary.get("classes") or []
        for v, label in zip(case.nodes["id"], case.nodes["label"], strict=True):
            at = table["label"][table["node"].index(numbers[name(v)])]
            got = classes[at] if at >= 0 else None
            want = None if missing(label) else str(value(label))
            if got != want:
                raise Wrong(f"the label of {v} is {got!r}, and should be {want!r}")
    if "split" in case.nodes:
        for v, split in zip(case.nodes["id"], case.nodes["split"], strict=True):
            got = table["split"][table["node"].index(numbers[name(v)])]
            if got != ("" if missing(split) else split):
                raise Wrong(f"the split of {v} is {got!r}, and should be {split!r}")
    if "features" in case.nodes:
        file = run.parent / "features.npy"
        done = call(program, "export", "--quiet", "--run", str(run), "--what", "features", "--format", "npy", "--out", str(file))
        if done.returncode:
            raise Wrong(f"export: {done.stderr}")
        rows = numpy.load(file)
        order = sorted(expected)
        want = numpy.zeros_like(rows)
        for v, row in zip(case.nodes["id"], case.nodes["features"], strict=True):
            if len(row) != rows.shape[1]:
                raise Wrong(f"{rows.shape[1]} features, and should be {len(row)}")
            want[order.index(name(v))] = [float(x) for x in row]
        if not numpy.array_equal(rows, want):
            raise Wrong(f"features are {rows.tolist()[:4]}, and should be {want.tolist()[:4]}")


def short(values):
    values = sorted(values, key=str)
    return f"{values[:8]}{' …' if len(values) > 8 else ''} ({len(values)})"


def write_text(folder, name, text, encoding="utf-8"):
    path = pathlib.Path(folder) / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path
