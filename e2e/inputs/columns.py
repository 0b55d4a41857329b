"""Parquet and Arrow as pyarrow, pandas, Polars and DuckDB write them."""

import base64
import datetime
import decimal
import uuid

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
from judge import Case, add

D = decimal.Decimal
ENDS = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (1, 4), (2, 2)]
SRC, DST = [u for u, _ in ENDS], [v for _, v in ENDS]
WEIGHTS = [1, 2, 3, 4, 5, 6, 7, 8]
NODES = list(range(6))


def arrow(values, type):
    return pyarrow.array(values, type=type)


def put(table, path, **options):
    """Writes a table in the format that the name says, and returns it as it is read back."""
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, **options)
        return pyarrow.parquet.read_table(path).to_pydict()
    with pyarrow.OSFile(str(path), "wb") as file:
        new = pyarrow.ipc.new_stream if options.pop("stream", False) else pyarrow.ipc.new_file
        with new(file, table.schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(table, max_chunksize=3)
    return table.to_pydict()


def edges(folder, scheme, ends, name="e.parquet", refused=(), warned=(), **options):
    """Edges whose ends have some type."""
    back = put(pyarrow.table({"src": ends(SRC), "dst": ends(DST)}), folder / name, **options)
    return Case(f"{scheme}:{folder}/{name}?src=src&dst=dst", edges=back, refused=refused, warned=warned)


IDS = {  # how a column of ids is made of small numbers
    **{f"int{b}": (lambda v, b=b: arrow(v, getattr(pyarrow, f"int{b}")())) for b in (8, 16, 32, 64)},
    **{f"uint{b}": (lambda v, b=b: arrow(v, getattr(pyarrow, f"uint{b}")())) for b in (8, 16, 32, 64)},
    **{f"float{b}, whole": (lambda v, b=b: arrow(numpy.array(v, f"float{b}"), getattr(pyarrow, f"float{b}")())) for b in (16, 32, 64)},
    **{
        f"decimal{b}({p},{s}), whole": (lambda v, b=b, p=p, s=s: arrow([D(x) for x in v], getattr(pyarrow, f"decimal{b}")(p, s)))
        for b, p, s in ((32, 9, 0), (64, 18, 2), (128, 9, 0), (128, 9, 2), (128, 18, 0), (128, 38, 0), (256, 60, 3))
    },
    "dictionary of int64": lambda v: arrow(v, pyarrow.int64()).dictionary_encode(),
}
TEXT = {
    "string": lambda v: arrow([f"n{x}" for x in v], pyarrow.string()),
    "large_string": lambda v: arrow([f"n{x}é" for x in v], pyarrow.large_string()),
    "string_view": lambda v: arrow([f"node number {x}, with a long name" for x in v], pyarrow.string_view()),
    "dictionary of string": lambda v: arrow([f"n{x}" for x in v], pyarrow.string()).dictionary_encode(),
    "uuid": lambda v: arrow([uuid.UUID(int=x * 3**70).bytes for x in v], pyarrow.uuid()),
}
DAY = datetime.datetime(2026, 1, 1)
NO_IDS = {  # and what the message has to name
    "date32": (lambda v: arrow([DAY.date() + datetime.timedelta(x) for x in v], pyarrow.date32()), "date"),
    "date64": (lambda v: arrow([DAY + datetime.timedelta(x) for x in v], pyarrow.date64()), "date"),
    "time32": (lambda v: arrow(v, pyarrow.time32("s")), "time"),
    "time64": (lambda v: arrow(v, pyarrow.time64("ns")), "time"),
    "timestamp(ms)": (lambda v: arrow(v, pyarrow.timestamp("ms")), "timestamp"),
    "timestamp(us, UTC)": (lambda v: arrow(v, pyarrow.timestamp("us", "UTC")), "timestamp"),
    "timestamp(ns)": (lambda v: arrow(v, pyarrow.timestamp("ns")), "timestamp"),
    "float64 with fractions": (lambda v: arrow([x + 0.5 for x in v], pyarrow.float64()), "(?i)fraction|whole|float"),
    "float64 with NaN": (lambda v: arrow([float("nan") if x == 3 else float(x) for x in v], pyarrow.float64()), "(?i)nan|whole|fraction"),
    "float64 above 2^53": (lambda v: arrow([2.0**60 + x * 2.0**20 for x in v], pyarrow.float64()), "2\\^53|float|range|large"),
    "decimal(9,2) with fractions": (lambda v: arrow([D(x) + D("0.25") for x in v], pyarrow.decimal128(9, 2)), "(?i)fraction|whole|decimal"),
    "null ends": (lambda v: arrow([None if x == 3 else x for x in v], pyarrow.int64()), "null"),
    "list": (lambda v: arrow([[x] for x in v], pyarrow.list_(pyarrow.int64())), "list"),
    "struct": (lambda v: arrow([{"a": x} for x in v], pyarrow.struct({"a": pyarrow.int64()})), "src"),
    "interval": (lambda v: arrow([(x, 1, 1) for x in v], pyarrow.month_day_nano_interval()), "interval"),
    "duration": (lambda v: arrow(v, pyarrow.duration("s")), "duration|time|int64"),
    "bool": (lambda v: arrow([x > 2 for x in v], pyarrow.bool_()), "bool"),
}
NOT_IN_PARQUET = {"interval", "duration"}  # pyarrow writes a duration as int64, and no interval

for scheme in ("table", "edges"):
    for what, ends in IDS.items():
        add(f"Parquet, {scheme}: ids of type {what}", edges, scheme, ends)
    for what, (ends, named) in NO_IDS.items():
        if what not in NOT_IN_PARQUET:
            add(f"Parquet, {scheme}: ids of type {what}", edges, scheme, ends, refused=(named,))
for what, ends in IDS.items():
    add(f"Arrow, table: ids of type {what}", edges, "table", ends, name="e.arrow")
for what, ends in TEXT.items():
    add(f"Parquet, table: ids of type {what}", edges, "table", ends)
    add(f"Arrow, table: ids of type {what}", edges, "table", ends, name="e.arrow")
    add(f"Parquet, edges: ids of type {what}", edges, "edges", ends, refused=("table:|whole numbers|text",))
for what, (ends, named) in NO_IDS.items():
    add(f"Arrow, table: ids of type {what}", edges, "table", ends, name="e.arrow", refused=(named,))

LAYOUTS = {
    "no compression": dict(compression="none"),
    **{c: dict(compression=c) for c in ("snappy", "gzip", "brotli", "zstd", "lz4")},
    "DELTA_BINARY_PACKED": dict(use_dictionary=False, column_encoding="DELTA_BINARY_PACKED"),
    "BYTE_STREAM_SPLIT": dict(use_dictionary=False, use_byte_stream_split=True),
    "plain": dict(use_dictionary=False),
    "data page V2": dict(data_page_version="2.0"),
    "data page V2, DELTA, zstd": dict(data_page_version="2.0", use_dictionary=False, column_encoding="DELTA_BINARY_PACKED", compression="zstd"),
    "row groups of 3": dict(row_group_size=3),
    "pages of one value": dict(data_page_size=1, write_batch_size=1, use_dictionary=False),
    "page index": dict(write_page_index=True),
    "no statistics": dict(write_statistics=False),
    "page checksums": dict(write_page_checksum=True),
    "version 1.0": dict(version="1.0"),
    "version 2.6, sorted": dict(version="2.6", sorting_columns=[pyarrow.parquet.SortingColumn(0)]),
}
for what, options in LAYOUTS.items():
    for scheme in ("table", "edges"):
        add(f"Parquet, {scheme}: {what}", edges, scheme, IDS["int64"], **options)
for what in ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
    add(f"Parquet, table: text in {what}", edges, "table", TEXT["string"], use_dictionary=False, column_encoding=what)
add("Parquet, table: text, data page V2", edges, "table", TEXT["string"], data_page_version="2.0")
for what, options in {
    "lz4": dict(compression="lz4"),
    "zstd": dict(compression="zstd"),
    "a stream": dict(stream=True),
    "a stream, zstd": dict(stream=True, compression="zstd"),
}.items():
    for type in ("int64", "string", "string_view", "dictionary of string"):
        add(f"Arrow, table: {what}, {type}", edges, "table", {**IDS, **TEXT}[type], name="e.arrow", **options)


def weights(folder, scheme, type, values, name="e.parquet", refused=(), **options):
    """Weights of some type."""
    table = pyarrow.table({"src": IDS["int64"](SRC), "dst": IDS["int64"](DST), "w": arrow(values, type)})
    back = put(table, folder / name, **options)
    back["weight"] = back.pop("w")
    return Case(f"{scheme}:{folder}/{name}?src=src&dst=dst&weight=w", edges=back, refused=refused)


QUARTERS = [D(x) / 4 for x in WEIGHTS]
for scheme in ("table", "edges"):
    for type in (pyarrow.int8(), pyarrow.uint16(), pyarrow.int32(), pyarrow.uint64(), pyarrow.float32(), pyarrow.float64()):
        add(f"Parquet, {scheme}: weights of type {type}", weights, scheme, type, WEIGHTS)
    add(f"Parquet, {scheme}: weights of type float16", weights, scheme, pyarrow.float16(), numpy.array(WEIGHTS, "float16"))
    for type in (pyarrow.decimal128(10, 2), pyarrow.decimal128(38, 10), pyarrow.decimal256(50, 4)):
        add(f"Parquet, {scheme}: weights of type {type}", weights, scheme, type, QUARTERS)
    add(
        f"Parquet, {scheme}: weights of type decimal(10,2) stored as integers",
        weights,
        scheme,
        pyarrow.decimal128(10, 2),
        QUARTERS,
        store_decimal_as_integer=True,
    )
    add(f"Parquet, {scheme}: a null weight", weights, scheme, pyarrow.float64(), [None, *WEIGHTS[1:]], refused=("null|missing|empty",))
    add(f"Parquet, {scheme}: weights that are times", weights, scheme, pyarrow.timestamp("us"), WEIGHTS, refused=("timestamp",))
    add(f"Parquet, {scheme}: weights that are dates", weights, scheme, pyarrow.date32(), WEIGHTS, refused=("date",))
    add(f"Parquet, {scheme}: a weight of zero", weights, scheme, pyarrow.float64(), [0, *WEIGHTS[1:]], refused=("0",))


def nodes(folder, columns, keys="features=x", features=None, label=None, split=None, name="n.parquet", refused=(), warned=(), **options):
    """A table of nodes with some columns."""
    put(pyarrow.table({"src": IDS["int64"](SRC), "dst": IDS["int64"](DST)}), folder / "e.parquet")
    back = put(pyarrow.table({"id": IDS["int64"](NODES), **columns}), folder / name, **options)
    known = {"id": back["id"], "all": True}
    if features:
        known["features"] = [
            sum((list(back[c][i]) if isinstance(back[c][i], list | tuple | numpy.ndarray) else [back[c][i]] for c in features), [])
            for i in range(len(NODES))
        ]
    if label:
        known["label"] = back[label]
    if split:
        known["split"] = back[split]
    return Case(
        f"table:{folder}/e.parquet?nodes={folder}/{name}&id=id&{keys}", edges={"src": SRC, "dst": DST}, nodes=known, refused=refused, warned=warned
    )


FEATURES = {
    **{f"int{b}": arrow([x - 3 for x in NODES], getattr(pyarrow, f"int{b}")()) for b in (8, 16, 32, 64)},
    **{f"uint{b}": arrow(NODES, getattr(pyarrow, f"uint{b}")()) for b in (8, 16, 32, 64)},
    "uint64 above 2^63": arrow([2**63 + 4096 * x for x in NODES], pyarrow.uint64()),
    "float16": arrow(numpy.array(NODES, "float16") / 4, pyarrow.float16()),
    "float32": arrow([x / 8 for x in NODES], pyarrow.float32()),
    "float64": arrow([x / 8 for x in NODES], pyarrow.float64()),
    "decimal(10,2)": arrow([D(x) / 4 for x in NODES], pyarrow.decimal128(10, 2)),
    "decimal(38,5)": arrow([D(x) / 4 for x in NODES], pyarrow.decimal128(38, 5)),
    "bool": arrow([x % 2 == 0 for x in NODES], pyarrow.bool_()),
    "dictionary of float64": arrow([x / 8 for x in NODES], pyarrow.float64()).dictionary_encode(),
    "list of float32": arrow([[x, x / 2] for x in NODES], pyarrow.list_(pyarrow.float32())),
    "list of float64": arrow([[x, x / 2, 1] for x in NODES], pyarrow.list_(pyarrow.float64())),
    "list of float16": arrow([numpy.array([x, x / 2], "float16") for x in NODES], pyarrow.list_(pyarrow.float16())),
    "list of int8": arrow([[x, -x] for x in NODES], pyarrow.list_(pyarrow.int8())),
    "large list of float32": arrow([[x, x / 2] for x in NODES], pyarrow.large_list(pyarrow.float32())),
    "fixed list of float32": arrow([[x, x / 2] for x in NODES], pyarrow.list_(pyarrow.float32(), 2)),
    "fixed list of float64": arrow([[x, x / 2] for x in NODES], pyarrow.list_(pyarrow.float64(), 2)),
    "list of decimals": arrow([[D(x) / 4, D(1)] for x in NODES], pyarrow.list_(pyarrow.decimal128(9, 2))),
}
NO_FEATURES = {
    "string": (arrow([str(x) for x in NODES], pyarrow.string()), "x"),
    "float64 with a null": (arrow([None, *NODES[1:]], pyarrow.float64()), "null"),
    "float64 with NaN": (arrow([float("nan"), *NODES[1:]], pyarrow.float64()), "(?i)nan"),
    "list with a null row": (arrow([None, *[[x, 1] for x in NODES[1:]]], pyarrow.list_(pyarrow.float32())), "null"),
    "list with an empty row": (arrow([[], *[[x, 1] for x in NODES[1:]]], pyarrow.list_(pyarrow.float32())), "empty|without values|length"),
    "list of other lengths": (arrow([[1], *[[x, 1] for x in NODES[1:]]], pyarrow.list_(pyarrow.float32())), "length|lists? of"),
    "list with a null inside": (arrow([[None, 1], *[[x, 1] for x in NODES[1:]]], pyarrow.list_(pyarrow.float32())), "null"),
    "list of text": (arrow([[str(x)] for x in NODES], pyarrow.list_(pyarrow.string())), "x"),
    "map": (arrow([[("a", x)] for x in NODES], pyarrow.map_(pyarrow.string(), pyarrow.int64())), "x"),
}
for what, column in FEATURES.items():
    add(f"Parquet, table: features of type {what}", nodes, {"x": column}, features=["x"])
    add(f"Arrow, table: features of type {what}", nodes, {"x": column}, features=["x"], name="n.arrow")
for what, (column, named) in NO_FEATURES.items():
    add(f"Parquet, table: features of type {what}", nodes, {"x": column}, refused=(named,))
    add(f"Arrow, table: features of type {what}", nodes, {"x": column}, refused=(named,), name="n.arrow")
for end in ("parquet", "arrow"):  # times are features where they are asked for by name, and a note says so
    add(
        f"timestamps as features, .{end}",
        nodes,
        {"x": arrow([v * 1024 for v in NODES], pyarrow.timestamp("us"))},
        name=f"n.{end}",
        warned=("timestamp",),
    )
    add(f"dates as features, .{end}", nodes, {"x": arrow(NODES, pyarrow.date32())}, name=f"n.{end}", warned=("date",))
add("Parquet, table: decimals as integers for features", nodes, {"x": FEATURES["decimal(10,2)"]}, features=["x"], store_decimal_as_integer=True)
add(
    "Parquet, table: lists, BYTE_STREAM_SPLIT, V2",
    nodes,
    {"x": FEATURES["list of float32"]},
    features=["x"],
    use_dictionary=False,
    use_byte_stream_split=["x.list.element"],
    data_page_version="2.0",
)
add(
    "Parquet, table: features of several columns",
    nodes,
    {"a": FEATURES["int8"], "b": FEATURES["float64"], "c": FEATURES["list of float32"]},
    keys="features=a,b,c",
    features=["a", "b", "c"],
)
add("Parquet, table: a column of FLOAT16 that is not read", nodes, {"x": FEATURES["float32"], "h": FEATURES["float16"]}, features=["x"])
add(
    "Parquet, table: columns of many types that are not read",
    nodes,
    {
        "x": FEATURES["float32"],
        "m": NO_FEATURES["map"][0],
        "t": arrow(NODES, pyarrow.timestamp("us")),
        "s": arrow([{"a": x} for x in NODES], pyarrow.struct({"a": pyarrow.int64()})),
        "b": arrow([b"x"] * 6, pyarrow.binary()),
        "n": arrow([None] * 6, pyarrow.null()),
    },
    features=["x"],
)

LABELS = {
    "int64": arrow([0, 1, 2, 0, 1, 2], pyarrow.int64()),
    "int8 with nulls": arrow([0, 1, None, 0, 1, None], pyarrow.int8()),
    "uint64": arrow([0, 1, 2, 0, 1, 2], pyarrow.uint64()),
    "string": arrow(["red", "blue", "red", None, "blue", "red"], pyarrow.string()),
    "string_view": arrow(["red", "blue", "red", None, "blue", "a class with a long name"], pyarrow.string_view()),
    "dictionary of string": arrow(["red", "blue", "red", None, "blue", "red"], pyarrow.string()).dictionary_encode(),
    "float64, whole, with nulls": arrow([0.0, 1.0, None, 0.0, 1.0, 2.0], pyarrow.float64()),
    "decimal(5,0)": arrow([D(x) for x in (0, 1, 2, 0, 1, 2)], pyarrow.decimal128(5, 0)),
    "bool": arrow([True, False, True, True, False, None], pyarrow.bool_()),
}
for what, column in LABELS.items():
    add(f"Parquet, table: labels of type {what}", nodes, {"y": column}, keys="label=y", label="y")
    add(f"Arrow, table: labels of type {what}", nodes, {"y": column}, keys="label=y", label="y", name="n.arrow")
add(
    "Parquet, table: labels of real numbers",
    nodes,
    {"y": arrow([x / 7 for x in NODES], pyarrow.float64())},
    keys="label=y",
    refused=("(?i)real|fraction|whole",),
)
add(
    "Parquet, table: splits",
    nodes,
    {"p": arrow(["train", "valid", "test", None, "train", "test"], pyarrow.string()), "y": LABELS["int64"]},
    keys="label=y&split=p",
    label="y",
    split="p",
)


def beside(folder, name, keys, columns, **known):
    """Edges in text, and labels, splits or features in a file of columns."""
    (folder / "e.txt").write_text("".join(f"{u} {v}\n" for u, v in ENDS))
    back = put(pyarrow.table({"id": IDS["int32"](NODES), **columns}), folder / name)
    return Case(
        f"edges:{folder}/e.txt?{keys.replace('FILE', str(folder / name))}",
        edges={"src": SRC, "dst": DST},
        nodes={"id": back["id"], **{k: back[c] for k, c in known.items()}},
    )


for end in ("parquet", "arrow"):
    for what in ("int64", "string", "dictionary of string", "bool"):
        add(f"edges: labels of type {what} from .{end}", beside, f"y.{end}", "labels=FILE", {"label": LABELS[what]}, label="label")
    add(
        f"edges: a named column of labels from .{end}",
        beside,
        f"y.{end}",
        "labels=FILE#topic",
        {"z": LABELS["int64"], "topic": LABELS["string"]},
        label="topic",
    )
    add(
        f"edges: splits from .{end}",
        beside,
        f"y.{end}",
        "splits=FILE",
        {"split": arrow(["train", "valid", "test", None, "train", "test"], pyarrow.string())},
        split="split",
    )
    for what in ("list of float32", "list of float16", "fixed list of float64", "list of int8", "large list of float32"):
        add(f"edges: features of type {what} from .{end}", beside, f"x.{end}", "features=FILE", {"x": FEATURES[what]}, features="x")


def beside_decimal(folder, end):
    (folder / "e.txt").write_text("".join(f"{u} {v}\n" for u, v in ENDS))
    back = put(
        pyarrow.table({"id": IDS["int64"](NODES), "a": FEATURES["decimal(10,2)"], "b": FEATURES["uint64 above 2^63"]}),
        folder / f"x.{end}",
        **({"store_decimal_as_integer": True} if end == "parquet" else {}),
    )
    return Case(
        f"edges:{folder}/e.txt?features={folder}/x.{end}",
        edges={"src": SRC, "dst": DST},
        nodes={"id": back["id"], "features": list(zip(back["a"], back["b"], strict=True))},
    )


add("edges: features of decimal and uint64 from .parquet", beside_decimal, "parquet")


def spark_vectors(folder, sparse):
    """The struct in which Spark ML stores vectors."""
    type = pyarrow.struct(
        {"type": pyarrow.int8(), "size": pyarrow.int32(), "indices": pyarrow.list_(pyarrow.int32()), "values": pyarrow.list_(pyarrow.float64())}
    )
    dense = [[float(x), 0.0, x / 2] for x in NODES]
    rows = []
    for i, row in enumerate(dense):
        at = [j for j, v in enumerate(row) if v]
        is_sparse = sparse == "sparse" or sparse == "mixed" and i % 2
        rows.append(
            {"type": 0, "size": 3, "indices": at, "values": [row[j] for j in at]}
            if is_sparse
            else {"type": 1, "size": None, "indices": None, "values": row}
        )
    case = nodes(folder, {"x": arrow(rows, type)})
    case.nodes["features"] = dense
    return case


for what in ("dense", "sparse", "mixed"):
    add(f"Parquet, table: {what} vectors of Spark ML", spark_vectors, what)


def duck(folder, select, copy="format parquet", scheme="table", keys="src=src&dst=dst", name="e.parquet", refused=(), weight=None):
    """Edges as DuckDB writes them. The query has {s} and {d} for the ends."""
    rows = ", ".join(f"({u}, {v}, {w})" for (u, v), w in zip(ENDS, WEIGHTS, strict=True))
    with duckdb.connect() as db:
        db.execute(f"create table t as select {select} from (values {rows}) as r(s, d, w)")
        db.execute(f"copy t to '{folder / name}' ({copy})")
        read = {}
        if not refused:
            rows = db.execute(f"select * from '{folder / name}'")
            read = dict(zip((c[0] for c in rows.description), zip(*rows.fetchall(), strict=True), strict=True))
    if weight:
        read["weight"] = read.pop(weight)
    return Case(f"{scheme}:{folder}/{name}?{keys}", edges=read, refused=refused)


for scheme in ("table", "edges"):
    for type in ("tinyint", "utinyint", "ubigint", "hugeint", "double", "decimal(18,0)", "decimal(38,0)", "decimal(9,2)"):
        add(f"DuckDB, {scheme}: ids of type {type}", duck, f"s::{type} src, d::{type} dst", scheme=scheme)
    for version in ("V1", "V2"):
        add(f"DuckDB, {scheme}: Parquet {version}", duck, "s src, d dst", copy=f"format parquet, parquet_version {version}", scheme=scheme)
    for codec in ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"):
        add(f"DuckDB, {scheme}: {codec}", duck, "s src, d dst", copy=f"format parquet, codec '{codec}'", scheme=scheme)
    add(
        f"DuckDB, {scheme}: weights of type decimal(10,2)",
        duck,
        "s src, d dst, (w / 4)::decimal(10,2) w",
        scheme=scheme,
        keys="src=src&dst=dst&weight=w",
        weight="w",
    )
    add(f"DuckDB, {scheme}: ids of type timestamp", duck, "make_timestamp(s) src, make_timestamp(d) dst", scheme=scheme, refused=("timestamp",))
    add(
        f"DuckDB, {scheme}: ids of type date",
        duck,
        "date '2026-01-01' + s::int src, date '2026-01-01' + d::int dst",
        scheme=scheme,
        refused=("date",),
    )
add("DuckDB, table: ids of type uuid", duck, "md5(s::text)::uuid src, md5(d::text)::uuid dst")
add("DuckDB, table: ids of type sum(…)", duck, "sum(s) over (partition by s, d, w) src, sum(d) over (partition by s, d, w) dst")
add("DuckDB, table: text, Parquet V2", duck, "'n' || s src, 'n' || d dst", copy="format parquet, parquet_version V2")
add("DuckDB, table: enum", duck, "('n' || s)::enum('n0', 'n1', 'n2', 'n3', 'n4', 'n5') src, ('n' || d)::enum('n0', 'n1', 'n2', 'n3', 'n4', 'n5') dst")
add("DuckDB, table: interval as ids", duck, "to_seconds(s) src, to_seconds(d) dst", refused=("interval",))
add("DuckDB, table: a bloom filter", duck, "'n' || s src, 'n' || d dst", copy="format parquet, write_bloom_filter true")
add("DuckDB, table: VARIANT that is not read", duck, "s src, d dst, s::variant v")
add("DuckDB, table: CSV", duck, "s src, d dst", copy="format csv, header", name="e.csv")
add("DuckDB, table: TSV, gzip", duck, "s src, d dst", copy="format csv, header, delimiter '\t', compression gzip", name="e.tsv.gz")
add("DuckDB, table: JSON lines", duck, "s src, d dst, [s, d] l", copy="format json", name="e.jsonl")


def encrypted(folder, plaintext_footer):
    """A file whose columns are encrypted by pyarrow, with keys that stay in memory."""
    from pyarrow.parquet import encryption

    class Keys(encryption.KmsClient):
        def __init__(self, _):
            encryption.KmsClient.__init__(self)

        def wrap_key(self, key, _):
            return base64.b64encode(key)

        def unwrap_key(self, key, _):
            return base64.b64decode(key)

    rule = encryption.EncryptionConfiguration(footer_key="f", column_keys={"c": ["src", "dst"]}, plaintext_footer=plaintext_footer)
    properties = encryption.CryptoFactory(Keys).file_encryption_properties(encryption.KmsConnectionConfig(), rule)
    table = pyarrow.table({"src": IDS["int64"](SRC), "dst": IDS["int64"](DST)})
    with pyarrow.parquet.ParquetWriter(folder / "e.parquet", table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return Case(f"table:{folder}/e.parquet", refused=("encrypted",))


add("Parquet, table: encrypted", encrypted, False)
add("Parquet, table: encrypted, with a plain footer", encrypted, True)


def polar(folder, frame, write, name="e.parquet", scheme="table", refused=(), **options):
    """Edges as Polars writes them."""
    frame = frame()
    getattr(frame, write)(folder / name, **options)
    return Case(f"{scheme}:{folder}/{name}?src=src&dst=dst", edges=frame.to_dict(as_series=False), refused=refused)


def frame(type=None, text=False, map=lambda v: v):
    return lambda: polars.DataFrame(
        {"src": [map(v) for v in SRC], "dst": [map(v) for v in DST]}, schema_overrides={"src": type, "dst": type} if type else None
    )


FRAMES = {
    "int64": frame(),
    "uint8": frame(polars.UInt8),
    "int128": frame(polars.Int128),
    "text": frame(map=lambda v: f"n{v}"),
    "long text": frame(map=lambda v: f"a node with the number {v}"),
    "categories": frame(polars.Categorical, map=lambda v: f"n{v}"),
    "enum": frame(polars.Enum([f"n{v}" for v in NODES]), map=lambda v: f"n{v}"),
    "decimal": frame(polars.Decimal(12, 0), map=D),
    "float32": frame(polars.Float32, map=float),
}
for what, make in FRAMES.items():
    if what != "int128":  # Parquet has no such type
        add(f"Polars, Parquet, table: {what}", polar, make, "write_parquet")
    add(f"Polars, Arrow, table: {what}", polar, make, "write_ipc", name="e.arrow", **({"refused": ("128|type",)} if what == "int128" else {}))
    add(
        f"Polars, Arrow stream, table: {what}",
        polar,
        make,
        "write_ipc_stream",
        name="e.arrow",
        **({"refused": ("128|type",)} if what == "int128" else {}),
    )
for codec in ("lz4", "zstd"):
    add(f"Polars, Arrow, table: {codec}", polar, FRAMES["long text"], "write_ipc", name="e.feather", compression=codec)
for codec in ("lz4", "uncompressed", "snappy", "gzip", "brotli", "zstd"):
    add(f"Polars, Parquet, edges: {codec}", polar, FRAMES["int64"], "write_parquet", scheme="edges", compression=codec)
add("Polars, CSV, table", polar, FRAMES["text"], "write_csv", name="e.csv")
add("Polars, JSON lines, table", polar, FRAMES["text"], "write_ndjson", name="e.ndjson")


def panda(folder, make, write, name="e.parquet", scheme="table", refused=(), **options):
    """Edges as pandas writes them."""
    made = make()
    getattr(made, write)(folder / name, **options)
    return Case(f"{scheme}:{folder}/{name}?src=src&dst=dst", edges={c: list(made[c]) for c in ("src", "dst")}, refused=refused)


def data(dtype=None, index=None, map=lambda v: v):
    return lambda: pandas.DataFrame(
        {"src": pandas.Series([map(v) for v in SRC], dtype=dtype), "dst": pandas.Series([map(v) for v in DST], dtype=dtype)}
    ).set_index(pandas.Index(index or range(len(SRC))))


PANDAS = {
    "int64": data(),
    "Int32, nullable": data("Int32"),
    "float64 after a join": data("float64"),
    "str": data("str", map=lambda v: f"n{v}"),
    "category": data("category", map=lambda v: f"n{v}"),
    "object": data("object", map=lambda v: f"n{v}"),
    "string[pyarrow]": data("string[pyarrow]", map=lambda v: f"n{v}"),
    "an index of text": data(index=list("abcdefgh")),
    "bool": data("bool", map=lambda v: v > 2),
}
for what, make in PANDAS.items():
    no = {"refused": ("bool",)} if what == "bool" else {}
    add(f"pandas, Parquet, table: {what}", panda, make, "to_parquet", **no)
    add(f"pandas, Feather, table: {what}", panda, (lambda make=make: make().reset_index(drop=True)), "to_feather", name="e.feather", **no)
add("pandas, Parquet, edges: float64 after a join", panda, PANDAS["float64 after a join"], "to_parquet", scheme="edges")
add("pandas, CSV, table: with its index", panda, PANDAS["str"], "to_csv", name="e.csv")
add("pandas, CSV, table: text in quotes", panda, PANDAS["str"], "to_csv", name="e.csv", index=False, quoting=1)
add("pandas, CSV, edges: float64 after a join", panda, PANDAS["float64 after a join"], "to_csv", name="e.csv", index=False, scheme="edges")
add("pandas, JSON lines, table", panda, PANDAS["str"], "to_json", name="e.jsonl", orient="records", lines=True)


def one_name_twice(folder, end):
    table = pyarrow.Table.from_arrays([IDS["int64"](SRC), IDS["int64"](DST), IDS["int64"](SRC)], names=["src", "dst", "src"])
    if end == "parquet":
        pyarrow.parquet.write_table(table, folder / "e.parquet")
    else:
        with pyarrow.ipc.new_file(folder / "e.arrow", table.schema) as writer:
            writer.write_table(table)
    return Case(f"table:{folder}/e.{end}", refused=("src", "(?i)twice|two columns|several|more than one|2 columns"))


for end in ("parquet", "arrow"):
    add(f"table: two columns of one name, .{end}", one_name_twice, end)


def parts(folder, kinds, refused=()):
    """A folder with parts whose ids have other types."""
    (folder / "e").mkdir()
    half = len(SRC) // 2
    for i, type in enumerate(kinds):
        rows = slice(i * half, (i + 1) * half)
        pyarrow.parquet.write_table(pyarrow.table({"src": arrow(SRC[rows], type), "dst": arrow(DST[rows], type)}), folder / "e" / f"part-{i}.parquet")
    return Case(f"table:{folder}/e?src=src&dst=dst", edges={"src": SRC, "dst": DST}, refused=refused)


add("Parquet, table: parts of int32 and int64", parts, (pyarrow.int32(), pyarrow.int64()))


def empty_part(folder, name, refused):
    (folder / "e").mkdir()
    put(pyarrow.table({"src": IDS["int64"](SRC), "dst": IDS["int64"](DST)}), folder / "e" / f"a.{name}")
    (folder / "e" / f"b.{name}").write_bytes(b"")
    return Case(f"table:{folder}/e?src=src&dst=dst", refused=refused)


for end in ("parquet", "arrow"):
    add(f"a part of 0 bytes, .{end}", empty_part, end, ("empty",))


def empty_table(folder, end):
    """A part with columns and no rows, as engines write it."""
    (folder / "e").mkdir()
    back = put(pyarrow.table({"src": IDS["int64"](SRC), "dst": IDS["int64"](DST)}), folder / "e" / f"b.{end}")
    put(pyarrow.table({"src": IDS["int64"]([]), "dst": IDS["int64"]([])}), folder / "e" / f"a.{end}")
    return Case(f"table:{folder}/e?src=src&dst=dst", edges=back)


for end in ("parquet", "arrow"):
    add(f"a part without rows, .{end}", empty_table, end)


def cut(folder, end):
    back = edges(folder, "table", IDS["int64"], name=f"e.{end}")
    file = folder / f"e.{end}"
    file.write_bytes(file.read_bytes()[:-7])
    return Case(back.uri, refused=("damaged|cut|no Parquet|no Arrow|incomplete",))


for end in ("parquet", "arrow"):
    add(f"a file that was cut off, .{end}", cut, end)
