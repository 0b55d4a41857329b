"""CSV, JSON lines, lists of edges, and what other programs write as text."""

import csv
import gzip
import io
import json

import networkx
import pandas
from columns import DST, ENDS, NODES, SRC
from judge import Case, add, write_text


def table(folder, text, keys="src=src&dst=dst", name="e.csv", edges=ENDS, refused=(), warned=(), encoding="utf-8", scheme="table", nodes=None):
    """A list of edges as text."""
    path = write_text(folder, name, text, encoding)
    known = {"src": [u for u, _ in edges], "dst": [v for _, v in edges]}
    return Case(f"{scheme}:{path}?{keys}" if keys else f"{scheme}:{path}", edges=known, nodes=nodes, refused=refused, warned=warned)


def lines(rows=ENDS, head="src,dst", by=",", end="\n"):
    return end.join(([head] if head else []) + [by.join(str(v) for v in row) for row in rows]) + end


NAMED = [(f"n{u}", f"n{v}") for u, v in ENDS]
ACCENTS = [("Zoë", "Łódź"), ("Łódź", "naïve"), ("naïve", "Zoë")]
LATIN = [("Zoë", "façade"), ("façade", "naïve")]

# How lines and fields are written.
for what, text, options in [
    ("commas", lines(), {}),
    ("CRLF", lines(end="\r\n"), {}),
    ("CR alone", lines(end="\r"), {}),
    ("no end of the last line", lines()[:-1], {}),
    ("tabs", lines(head="src\tdst", by="\t"), dict(name="e.tsv")),
    ("semicolons", lines(head="src;dst", by=";"), {}),
    ("bars", lines(head="src|dst", by="|"), {}),
    ("sep=; of Excel", "sep=;\n" + lines(head="src;dst", by=";"), {}),
    ("a byte order mark", "\ufeff" + lines(), {}),
    ("a byte order mark and quotes", "\ufeff" + lines([(f'"{u}"', f'"{v}"') for u, v in NAMED], head='"src","dst"'), dict(edges=NAMED)),
    ("blank lines", lines().replace("\n", "\n\n"), {}),
    ("blanks around fields", lines(by=" , ", head="src , dst"), {}),
    ("quotes", lines([(f'"{u}"', f'"{v}"') for u, v in NAMED]), dict(edges=NAMED)),
    ("quotes in quotes", lines([(f'"a ""{u}"""', f'"{v}, x"') for u, v in ENDS]), dict(edges=[(f'a "{u}"', f"{v}, x") for u, v in ENDS])),
    ("line ends in quotes", lines([(f'"a\n{u}"', f'"{v}"') for u, v in NAMED]), dict(edges=[(f"a\n{u}", v) for u, v in NAMED])),
    ("text that is no ASCII", lines(ACCENTS), dict(edges=ACCENTS)),
    ("further columns", lines([(u, v, "x", 1.5) for u, v in ENDS], head="src,dst,kind,time"), {}),
    ("columns in another order", lines([("x", v, u) for u, v in ENDS], head="kind,dst,src"), {}),
    ("gzip", gzip.compress(lines().encode()), dict(name="e.csv.gz")),
    ("leading zeros are text", lines([(f"0{u}", f"0{v}") for u, v in ENDS]), dict(edges=[(f"0{u}", f"0{v}") for u, v in ENDS])),
    ("header=false", lines(head=""), dict(keys="header=false")),
]:
    add(f"CSV, table: {what}", table, text, **options)

for what, text, options in [
    ("a header of numbers", lines(head=""), dict(keys="", refused=("header",))),
    (
        "a header twice the same",
        lines([(u, v, u) for u, v in ENDS], head="src,dst,src"),
        dict(refused=("src", "(?i)twice|two columns|several|more than one|2 columns")),
    ),
    ("a header alone", "src,dst\n", dict(refused=("e.csv",))),
    ("nothing", "", dict(refused=("e.csv", "empty"))),
    ("a short line", "src,dst\n0,1\n2\n", dict(refused=("line 3",))),
    ("a long line", "src,dst\n0,1\n2,3,4\n", dict(refused=("line 3",))),
    ("a quote that does not close", 'src,dst\n0,1\n"2,3\n4,5\n', dict(refused=("line 3", "(?i)quote"))),
    ("an empty id", "src,dst\n0,1\n,3\n", dict(refused=("line 3", "empty"))),
    ("Latin-1", lines(LATIN), dict(encoding="latin-1", refused=("line 2", "UTF-8", "encoding="))),
    ("UTF-16", lines(), dict(encoding="utf-16", refused=("UTF-16", "encoding="))),
    ("GML", "graph [\n  node [\n    id 0\n  ]\n]\n", dict(name="e.gml", keys="", refused=("e.gml", "no table"))),
    ("no such column", lines(), dict(keys="src=from&dst=dst", refused=("from", "src, dst"))),
]:
    add(f"CSV, table: {what}", table, text, **options)
add("CSV, table: encoding=latin-1", table, lines(LATIN), encoding="latin-1", keys="src=src&dst=dst&encoding=latin-1", edges=LATIN)
add(
    "CSV, table: encoding=windows-1252",
    table,
    lines([("a€", "b"), ("b", "c’")]),
    encoding="windows-1252",
    keys="encoding=windows-1252",
    edges=[("a€", "b"), ("b", "c’")],
)
add("CSV, table: encoding=utf-16", table, lines(ACCENTS), encoding="utf-16", keys="encoding=utf-16", edges=ACCENTS)
add(
    "CSV, table: a header whose names are ids",
    table,
    lines([("n0", "n1"), ("n1", "n2")], head="n2,n0"),
    keys="src=n2&dst=n0",
    edges=[("n0", "n1"), ("n1", "n2")],
    warned=("header",),
)
for token in ("NA", "nan", "NULL", "N/A", "\\N", "None"):
    add(
        f"CSV, table: {token} as an id",
        table,
        lines([*NAMED, ("n1", token), ("n2", token)]),
        edges=[*NAMED, ("n1", token), ("n2", token)],
        warned=("missing=",),
    )
add("CSV, table: ids that miss, with missing=", table, lines([*NAMED, ("n1", "NA")]), keys="missing=NA", refused=("line 10|null|missing",))


def text_nodes(folder, head, rows, keys, known, refused=(), warned=()):
    write_text(folder, "n.csv", lines(rows, head=head))
    case = table(folder, lines(), keys=f"nodes={folder}/n.csv&{keys}", nodes={"id": NODES, "all": True, **known}, refused=refused, warned=warned)
    return case


add(
    "CSV, table: features",
    text_nodes,
    "id,x,y",
    [(v, v / 4, f"{v}e-1" if False else f"{v}.5") for v in NODES],
    "features=x,y",
    {"features": [(v / 4, v + 0.5) for v in NODES]},
)
for number, value in {"1e3": 1000, ".5": 0.5, "5.": 5, "+1": 1, "-0": 0, "1E-2": 0.01, "0001": 1}.items():
    add(
        f"CSV, table: the number {number}",
        text_nodes,
        "id,x",
        [(v, number if v == 3 else v) for v in NODES],
        "features=x",
        {"features": [(value if v == 3 else v,) for v in NODES]},
    )
    add(f"CSV, edges: the number {number}", lambda folder, number=number, value=value: beside_text(folder, number, value))
for number in ("1_000", "0x1p4", "0b1", "1e999", "inf", "Infinity", "nan", "1,5", "", "one"):
    add(
        f"CSV, table: {number!r} is no number",
        text_nodes,
        "id,x",
        [(v, f'"{number}"' if v == 3 else v) for v in NODES],
        "features=x",
        {},
        refused=("n.csv line 5",),
    )
    add(
        f"CSV, edges: {number!r} is no number",
        lambda folder, number=number: beside_text(folder, f'"{number}"' if "," in number else number, refused=True),
    )


def beside_text(folder, number, value=None, refused=False):
    write_text(folder, "x.csv", lines([(v, number if v == 3 else v) for v in NODES], head="id,x"))
    case = table(
        folder, lines(head="", by=" "), keys=f"features={folder}/x.csv", name="e.txt", scheme="edges", refused=("x.csv line 5",) if refused else ()
    )
    case.nodes = {"id": NODES, "features": [(value if v == 3 else v,) for v in NODES]}
    return case


LABELS = ["red", "blue", "red", "", "blue", "red"]
add("CSV, table: labels", text_nodes, "id,y", list(zip(NODES, LABELS, strict=True)), "label=y", {"label": [y or None for y in LABELS]})
add("CSV, table: labels of real numbers", text_nodes, "id,y", [(v, v / 7) for v in NODES], "label=y", {}, refused=("(?i)real|fraction|whole",))
for token in ("NA", "NULL", "N/A", "\\N"):
    rows = [(v, token if v == 3 else y) for v, y in zip(NODES, LABELS, strict=True)]
    add(f"CSV, table: the label {token}, with missing=", text_nodes, "id,y", rows, f"label=y&missing={token}", {"label": [y or None for y in LABELS]})
    add(f"CSV, table: the label {token}", text_nodes, "id,y", rows, "label=y", {}, warned=("missing=",))

# Lists of edges with ids that are numbers.
for what, text, options in [
    ("blanks", lines(head="", by=" "), {}),
    ("tabs, and comments of SNAP", "# Nodes: 6 Edges: 8\n# FromNodeId\tToNodeId\n" + lines(head="", by="\t"), {}),
    ("commas and a header", lines(), dict(name="e.csv")),
    ("no header", lines(head=""), dict(name="e.csv")),
    ("CRLF", lines(head="", by=" ", end="\r\n"), {}),
    ("CR alone", lines(head="", by=" ", end="\r"), {}),
    ("several blanks", lines(head="", by="   "), {}),
    ("a byte order mark", "\ufeff" + lines(head="", by=" "), {}),
    ("whole floats", lines([(f"{u}.0", f"{v}.0") for u, v in ENDS], head=""), {}),
    ("bars", lines(head="src|dst", by="|"), dict(keys="src=src&dst=dst")),
]:
    add(f"text, edges: {what}", table, text, **{"name": "e.txt", "keys": "", "scheme": "edges", **options})
for what, text, words in [
    ("a negative id", "0 1\n-1 2\n", ("line 2", "-1")),
    ("text as an id", "0 1\na b\n", ("line 2", "table:")),
    ("an id above 2^32", "0 1\n4294967296 2\n", ("line 2",)),
    ("a fraction", "0 1\n1.5 2\n", ("line 2",)),
    ("1_000", "0 1\n1_000 2\n", ("line 2",)),
    ("0x10", "0 1\n0x10 2\n", ("line 2",)),
    ("one column", "0\n1\n", ("column",)),
    ("nothing", "", ("empty",)),
    ("GraphML", '<?xml version="1.0"?>\n<graphml>\n</graphml>\n', ("GraphML",)),
    ("NUL bytes", "0 1\n\0\0\0\n", ("line 2|NUL|binary|no text",)),
]:
    add(f"text, edges: {what}", table, text, name="e.txt", keys="", scheme="edges", refused=words)
add("text, edges: 0870 and 870", table, "0870 1\n870 2\n", name="e.txt", keys="", scheme="edges", refused=("line 1", "leading zeros"))

# JSON lines.
ROWS = [{"src": u, "dst": v} for u, v in ENDS]
for what, rows, options in [
    ("numbers", ROWS, {}),
    ("text", [{"src": u, "dst": v} for u, v in NAMED], dict(edges=NAMED)),
    ("an unread field of mixed types", [{**r, "m": m} for r, m in zip(ROWS, (1, "a", None, [1], {"b": 2}, True, 1.5, "z"), strict=True)], {}),
    ("an unread field that some rows lack", [{**r, **({"m": 1} if i % 2 else {})} for i, r in enumerate(ROWS)], {}),
    ("escapes", [{"src": 'a"b\u00e9\n', "dst": "\U0001f600"}], dict(edges=[('a"bé\n', "😀")])),
    ("large numbers", [{"src": 2**53 + 1, "dst": 2**62}], dict(edges=[(2**53 + 1, 2**62)])),
]:
    add(f"JSON lines, table: {what}", table, "".join(json.dumps(r) + "\n" for r in rows), name="e.jsonl", **options)
add("JSON lines, table: a null id", table, '{"src": 0, "dst": 1}\n{"src": null, "dst": 1}\n', name="e.jsonl", refused=("line 2", "null"))
add("JSON lines, table: a line that is cut off", table, '{"src": 0, "dst": 1}\n{"src": 2, "d', name="e.jsonl", refused=("line 2",))
add("JSON lines, table: one document", table, json.dumps(ROWS, indent=1), name="e.json", refused=("e.json", "line"))
add(
    "JSON lines, table: records of pandas", lambda folder: table(folder, pandas.DataFrame(ROWS).to_json(orient="records", lines=True), name="e.jsonl")
)


# What NetworkX writes.
def network(folder, write, name, uri, refused=(), numbers=True, weighted=False, **options):
    graph = networkx.Graph()
    graph.add_edges_from(ENDS if numbers else NAMED)
    for at, (u, v) in enumerate(graph.edges):
        graph[u][v]["weight"] = at + 1.0
    getattr(networkx, write)(graph, folder / name, **options)
    known = {"src": [u for u, _ in graph.edges], "dst": [v for _, v in graph.edges]}
    if weighted:
        known["weight"] = [d["weight"] for *_, d in graph.edges(data=True)]
    return Case(uri.replace("FILE", str(folder / name)), edges=known, refused=refused)


add("NetworkX: write_edgelist(data=False)", network, "write_edgelist", "e.txt", "edges:FILE", data=False)
add(
    "NetworkX: write_edgelist(data=['weight'])", network, "write_edgelist", "e.txt", "edges:FILE?src=1&dst=2&weight=3", data=["weight"], weighted=True
)
add("NetworkX: write_edgelist", network, "write_edgelist", "e.txt", "edges:FILE", refused=("write_edgelist",))
add("NetworkX: write_weighted_edgelist", network, "write_weighted_edgelist", "e.txt", "edges:FILE?src=1&dst=2&weight=3", weighted=True)
add("NetworkX: write_adjlist", network, "write_adjlist", "e.txt", "adjlist:FILE")
add("NetworkX: write_gml", network, "write_gml", "e.gml", "edges:FILE", refused=("GML",))
add("NetworkX: write_graphml", network, "write_graphml", "e.graphml", "edges:FILE", refused=("GraphML",))
add("NetworkX: write_pajek", network, "write_pajek", "e.net", "edges:FILE", refused=("(?i)pajek",))
add("NetworkX: write_gexf", network, "write_gexf", "e.gexf", "edges:FILE", refused=("GEXF",))


def by_module(folder, dialect, quoting):
    out = io.StringIO()
    writer = csv.writer(out, dialect=dialect, quoting=quoting)
    writer.writerow(["src", "dst", "note"])
    for u, v in NAMED:
        writer.writerow([u, v, 'said "x", twice\nand on'])
    return table(folder, out.getvalue(), edges=NAMED)


for dialect in ("excel", "unix"):
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        add(f"CSV, table: Python's csv, {dialect}, quoting {quoting}", by_module, dialect, quoting)
assert SRC and DST
