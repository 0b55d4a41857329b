"""Compares the first two fields of the rows of CSV files with those that the list names."""

import csv
import gzip
import io
import json
import sys

csv.field_size_limit(1 << 26)
for file in json.load(open(sys.argv[1], encoding="utf-8")):
    opened = gzip.open if file["path"].endswith(".gz") else open
    with opened(file["path"], "rb") as f:
        text = f.read().decode("utf-8-sig")
    lines = io.StringIO(text, newline="")
    # Blanks in front of a quote are no part of a field.
    rows = csv.reader(lines, delimiter=file["separator"], skipinitialspace=file["separator"] not in " \t")
    # Lines before the first row are counted by their ends, of any kind.
    skip = file["skip"]
    kept = []
    while skip > rows.line_num and (row := next(rows, None)) is not None:
        pass
    kept = [[v.strip().replace("\r\n", "\n").replace("\r", "\n") for v in row[:2]] for row in rows if row and len(row) == file["columns"] and row != [""]]
    if kept != file["rows"]:
        at = next((i for i, (a, b) in enumerate(zip(kept, file["rows"])) if a != b), min(len(kept), len(file["rows"])))
        print(f"{file['path']}: {len(kept)} rows, not {len(file['rows'])}; row {at}: {kept[at : at + 1]}, not {file['rows'][at : at + 1]}")
