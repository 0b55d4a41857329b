"""Reads the columns of Parquet and Arrow files with pyarrow, and compares them with what a test read.

Standard input has an object a line: a file, and an error or its columns, each with a kind, the number of
rows, and a digest of its values or an error. A line of the output is a difference.
"""
import decimal
import hashlib
import json
import struct
import sys

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq


def table(path):
    with open(path, "rb") as f:
        head = f.read(6)
    if head[:4] == b"PAR1" or ".parquet" in path:
        with pq.ParquetFile(path, page_checksum_verification=True) as f:
            return f.read()
    if head == b"ARROW1":
        return pa.ipc.open_file(path).read_all()
    return pa.ipc.open_stream(path).read_all()


def number(x):
    """The digits of a decimal without zeros at the end."""
    text = format(x, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def bits(x, form):
    if x != x:
        return "nan"
    try:
        return struct.pack(form, x).hex()
    except OverflowError:
        return struct.pack(form, float("inf") if x > 0 else float("-inf")).hex()


def single(x):
    return "null" if x is None else bits(float(x), ">f")


def flat(typ):
    if pa.types.is_dictionary(typ):
        return typ.value_type
    return typ


def values(column, kind):
    typ = flat(column.type)
    if kind == "times":
        if pa.types.is_time32(typ) or pa.types.is_date32(typ):
            column = column.cast(pa.int32())
        column = column.cast(pa.int64())
    if isinstance(typ, pa.BaseExtensionType) and kind in ("string", "binary"):
        if str(typ) == "extension<arrow.uuid>":
            return ["null" if v is None else str(v).encode().hex() for v in column.to_pylist()]
        column = pa.chunked_array([c.storage for c in column.chunks], type=typ.storage_type)
    if kind == "string" and not pa.types.is_dictionary(column.type):
        column = column.cast(pa.large_binary() if not pa.types.is_fixed_size_binary(column.type) else column.type)
    out = []
    for v in column.to_pylist():
        if v is None:
            out.append("null")
        elif kind in ("int64", "uint64", "bool", "times"):
            out.append(str(int(v)))
        elif kind == "float":
            out.append(bits(float(v), ">d"))
        elif kind == "decimal":
            out.append(number(v))
        elif kind == "string":
            out.append((v.encode() if isinstance(v, str) else v).hex())
        elif kind == "lists of numbers":
            out.append("[" + ",".join(single(x) for x in v) + "]")
        elif kind == "vectors":
            size = v["size"] if v["type"] == 0 else len(v["values"])
            at = v["indices"] if v["type"] == 0 else range(size)
            out.append("%d<%s>" % (size, ",".join("%d:%s" % (i, single(x)) for i, x in zip(at, v["values"]))))
        else:
            raise ValueError(kind)
    return out


def inner(t, name):
    """A column, or one inside of structs."""
    if name in t.column_names:
        if t.column_names.count(name) > 1:
            return None
        return t.column(name)
    parts = name.split(".")
    for k in range(1, len(parts)):
        if ".".join(parts[:k]) in t.column_names:
            c = t.column(".".join(parts[:k]))
            for p in parts[k:]:
                c = pa.compute.struct_field(c, p)
            return c
    raise KeyError(name)


READ = ("int", "uint", "float", "double", "halffloat", "bool", "string", "large_string", "string_view", "decimal", "date", "timestamp", "time")


def compare(said):
    path = said["file"]
    try:
        t = table(path)
    except Exception as e:  # what pyarrow refuses
        refused = said.get("error") or any(c.get("error") for c in said["columns"])
        if not refused:
            print(f"{path}: read, and pyarrow says: {str(e)[:120]}")
        return
    if said.get("error"):
        print(f"{path}: pyarrow reads it: {said['error']}")
        return
    for c in said["columns"]:
        where = f"{path} column {c['name']}"
        try:
            column = inner(t, c["name"])
        except Exception as e:
            print(f"{where}: {e}")
            continue
        if column is None:
            continue
        if c.get("error"):
            if str(flat(column.type)).startswith(READ) and c["kind"] != "mixed":
                print(f"{where} of {column.type}: {c['error']}")
            continue
        if len(column) != c["rows"]:
            print(f"{where}: {c['rows']} rows, and {len(column)}")
            continue
        try:
            got = values(column, c["kind"])
        except Exception as e:
            print(f"{where} of {column.type} as {c['kind']}: {type(e).__name__} {e}")
            continue
        digest = hashlib.sha256("".join(v + "\n" for v in got).encode()).hexdigest()
        if digest != c["digest"]:
            print(f"{where} of {column.type} as {c['kind']}: other values, first {got[0] if got else None} and {c['first']}, last {got[-1] if got else None} and {c['last']}")


import pyarrow.compute  # noqa: E402

decimal.getcontext().prec = 100
for line in sys.stdin:
    compare(json.loads(line))
