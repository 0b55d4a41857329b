"""Writes arrays and sparse matrices as NumPy and SciPy do, and what these libraries read from them as
cases.json: {"uri": {"edges": [[u, v]], "weights": [...], "features": [[...]], "labels": [...], "split": {...}}}."""

import json
import sys
from pathlib import Path

import numpy
import scipy.sparse as sp

out = Path(sys.argv[1])
random = numpy.random.default_rng(7)
n, f = 60, 9
cases = {}


def save(name, a, order=None):
    numpy.save(out / name, a if order is None else numpy.asarray(a, order=order))


def case(uri, **what):
    cases[uri] = {k: numpy.asarray(v).tolist() if k != "split" else v for k, v in what.items()}


# Graphs.
dense = random.integers(0, 4, (n, n)) * (random.random((n, n)) < 0.08)
row, col = numpy.nonzero(dense)
pairs = numpy.stack([row, col], axis=1)
weights = dense[row, col]
rectangular = dense[: n // 2]


def matrix(name, m, **edges):
    for compressed in (True, False):
        file = f"{name}_{compressed}.npz"
        sp.save_npz(out / file, m, compressed=compressed)
        for kind in ("npz", "edges"):
            case(f"{kind}:%s/{file}", edges=pairs)
            case(f"{kind}:%s/{file}?weight=value", edges=pairs, weights=weights)


for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array, sp.coo_matrix, sp.coo_array):
    for dtype in ("f4", "f8", "i1", "u8", "i8"):
        m = kind(dense.astype(dtype))
        if kind.__name__[:3] != "coo":
            for index in ("i4", "i8"):
                m.indices, m.indptr = m.indices.astype(index), m.indptr.astype(index)
                matrix(f"{kind.__name__}_{dtype}_{index}", m)
        else:
            matrix(f"{kind.__name__}_{dtype}", m)
ones = sp.csc_array(dense != 0)
sp.save_npz(out / "bool.npz", ones)
case("edges:%s/bool.npz", edges=pairs)
numpy.savez(out / "text_format.npz", data=ones.data, indices=ones.indices, indptr=ones.indptr, shape=ones.shape, format="csc")
case("npz:%s/text_format.npz", edges=pairs)
swapped = {k: v.astype(v.dtype.newbyteorder(">")) for k, v in (("data", weights), ("row", row), ("col", col))}
numpy.savez(out / "swapped.npz", shape=(n, n), format=b"coo", **swapped)  # SciPy once wrote such ones
case("npz:%s/swapped.npz?weight=value", edges=pairs, weights=weights)
numpy.savez(out / "coords.npz", data=weights, coords=pairs.T, shape=(n, n), format=b"coo", _is_array=True)
case("edges:%s/coords.npz?weight=value", edges=pairs, weights=weights)
sp.save_npz(out / "half.npz", sp.csr_matrix(rectangular))
for name, m in {"bsr": sp.bsr_matrix(dense), "dia": sp.dia_matrix(dense)}.items():
    sp.save_npz(out / f"{name}.npz", m)

# Lists of edges.
for dtype in ("i8", ">i8", "u2", ">u2", "u1", "u8", "f8", ">f4", "f4", "i4"):
    for order in "CF":
        name = f"list_{dtype.replace('>', 'b')}_{order}.npy"
        save(name, pairs.astype(dtype), order)
        save("t" + name, pairs.T.astype(dtype), order)
        case(f"edges:%s/{name}", edges=pairs)
        case(f"edges:%s/t{name}", edges=pairs)
three = numpy.column_stack([pairs, weights * 0.25])
for order in "CF":
    save(f"three_{order}.npy", three, order)
    save(f"tthree_{order}.npy", three.T, order)
    for name in (f"three_{order}", f"tthree_{order}"):
        case(f"edges:%s/{name}.npy", edges=pairs)
        case(f"edges:%s/{name}.npy?weight=3", edges=pairs, weights=weights * 0.25)
numpy.savez_compressed(out / "list.npz", other=weights, edge_index=pairs.T, w=weights)
case("edges:%s/list.npz?weight=w", edges=pairs, weights=weights)
case("npz:%s/list.npz?weight=w", edges=pairs, weights=weights)

# Features.
save("e.npy", numpy.array([[0, 1], [1, 2], [2, 3]]))
x = random.integers(-3, 4, (n, f)) * (random.random((n, f)) < 0.4)
x[5] = 0
x[7] = numpy.arange(1, f + 1)
for dtype in ("f2", ">f2", "f4", ">f4", "f8", ">f8", "i1", "i2", ">i2", "i4", "i8", ">i8"):
    for order in "CF":
        name = f"x_{dtype.replace('>', 'b')}_{order}"
        save(f"{name}.npy", x.astype(dtype), order)
        case(f"edges:%s/e.npy?features=%s/{name}.npy", features=x)
for dtype in ("u1", ">u2", "u4", "u8", "?"):
    y = numpy.abs(x).astype(dtype)
    save(f"x_{dtype.replace('>', 'b')}.npy".replace("?", "bool"), y, "F")
    case(f"edges:%s/e.npy?features=%s/x_{dtype.replace('>', 'b')}.npy".replace("x_?", "x_bool"), features=y.astype("f8"))
numpy.savez_compressed(out / "x_named.npz", y=numpy.arange(n), node_features=numpy.asfortranarray(x))
case("edges:%s/e.npy?features=%s/x_named.npz", features=x)
numpy.savez(out / "x_one.npz", numpy.asfortranarray(x))
case("edges:%s/e.npy?features=%s/x_one.npz", features=x)
for kind in (sp.csr_matrix, sp.csc_array, sp.coo_matrix, sp.coo_array, sp.csr_array, sp.csc_matrix):
    for dtype in ("f4", "f8", "i2"):
        name = f"s_{kind.__name__}_{dtype}.npz"
        sp.save_npz(out / name, kind(x.astype(dtype)))
        case(f"edges:%s/e.npy?features=%s/{name}", features=x)
# Unsorted indices, repeated entries, explicit zeros, in any order; SciPy adds them up.
k = 900
r, c = random.integers(0, n, k), random.integers(0, f, k)
for dtype in ("f4", "f8", "i8", "?"):
    v = (random.normal(size=k) * 10).astype(dtype)
    v[::7] = 0
    coo = sp.coo_array((v, (r, c)), shape=(n, f))
    by_row = numpy.argsort(r, kind="stable")
    ascending = sp.coo_array((v[by_row], (r[by_row], c[by_row])), shape=(n, f))
    indptr = numpy.concatenate([[0], numpy.cumsum(numpy.bincount(r, minlength=n))])
    csr = sp.csr_array((v[by_row], c[by_row], indptr), shape=(n, f))
    by_col = numpy.argsort(c, kind="stable")
    csc = sp.csc_array((v[by_col], r[by_col], numpy.concatenate([[0], numpy.cumsum(numpy.bincount(c, minlength=f))])), shape=(n, f))
    want = csr.toarray().astype("f4").astype("f8")
    for name, m in {"coo": coo, "ascending": ascending, "csr": csr, "csc": csc}.items():
        file = f"dup_{name}_{dtype}.npz".replace("?", "bool")
        sp.save_npz(out / file, m)
        assert numpy.allclose(m.toarray().astype("f4"), want), file
        case(f"edges:%s/e.npy?features=%s/{file}", features=want)

# Labels and splits.
y = random.integers(0, 3, n)
for dtype in ("i8", ">i8", "u1", "f4", ">f8", "i1"):
    for shape in ((n,), (n, 1), (1, n)):
        name = f"y_{dtype.replace('>', 'b')}_{len(shape)}_{shape[0]}.npy"
        save(name, y.astype(dtype).reshape(shape))
        case(f"edges:%s/e.npy?labels=%s/{name}", labels=y)
words = numpy.array(["a", "bä", "c"])[y]
for name, a in {"U": words, "S": numpy.char.encode(words, "utf-8"), "bU": words.astype(">U3")}.items():
    save(f"y_{name}.npy", a)
    case(f"edges:%s/e.npy?labels=%s/y_{name}.npy", labels=y)
for dtype in ("?", "f4", "i8", ">f4"):
    for order in "CF":
        name = f"hot_{dtype.replace('>', 'b')}_{order}.npy".replace("?", "bool")
        save(name, numpy.eye(3)[y].astype(dtype), order)
        case(f"edges:%s/e.npy?labels=%s/{name}", labels=y)
numpy.savez(out / "y.npz", x=x, y=y)
case("edges:%s/e.npy?labels=%s/y.npz", labels=y)
case("edges:%s/e.npy?labels=%s/y.npz#y", labels=y)
parts = random.integers(0, 4, (4, n))
for pick in (0, 2):
    split = {str(i): int(p) for i, p in enumerate(parts[pick]) if p}
    for turned in (False, True):
        for order in "CF":
            name = f"masks_{turned}_{order}"
            masks = {k: numpy.asarray((parts == i + 1).T if turned else parts == i + 1, order=order) for i, k in enumerate(("train_masks", "val_masks", "test_masks"))}
            numpy.savez_compressed(out / f"{name}.npz", **masks)
            numpy.savez(out / f"{name}_stored.npz", **masks)
            for file in (f"{name}.npz", f"{name}_stored.npz"):
                case(f"edges:%s/e.npy?splits=%s/{file}&nodes={n}&split={pick}", split=split)
            save(f"splits_{turned}_{order}.npy", parts.T if turned else parts, order)
            case(f"edges:%s/e.npy?splits=%s/splits_{turned}_{order}.npy&split={pick}", split=split)
    if pick == 0:
        for dtype in ("U", "S"):
            save(f"split_{dtype}.npy", numpy.array(["", "train", "val", "test"])[parts[0]].astype(dtype))
            case(f"edges:%s/e.npy?splits=%s/split_{dtype}.npy", split=split)
        for dtype in (">i8", "u1", "f8"):
            numpy.savez(out / f"lists_{dtype.replace('>', 'b')}.npz", **{k: numpy.nonzero(parts[0] == i + 1)[0].astype(dtype) for i, k in enumerate(("train_idx", "valid_idx", "test_idx"))})
            case(f"edges:%s/e.npy?splits=%s/lists_{dtype.replace('>', 'b')}.npz&nodes={n}", split=split)

# Formats of files: versions 2 and 3, a mapped file, bytes behind the array.
for version in ((1, 0), (2, 0), (3, 0)):
    with open(out / f"v{version[0]}.npy", "wb") as file:
        numpy.lib.format.write_array(file, x.astype("f4"), version=version)
    case(f"edges:%s/e.npy?features=%s/v{version[0]}.npy", features=x)
mapped = numpy.lib.format.open_memmap(out / "mapped.npy", mode="w+", dtype=">f4", shape=(n, f), fortran_order=True)
mapped[:] = x
mapped.flush()
case("edges:%s/e.npy?features=%s/mapped.npy", features=x)
with open(out / "behind.npy", "wb") as file:
    numpy.save(file, x)
    file.write(bytes(4096))
case("edges:%s/e.npy?features=%s/behind.npy", features=x)

(out / "cases.json").write_text(json.dumps(cases))
