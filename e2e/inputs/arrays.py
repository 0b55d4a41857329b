"""Arrays and matrices as NumPy and SciPy save them."""

import pathlib

import numpy
import scipy.io
import scipy.sparse
from columns import DST, ENDS, NODES, SRC
from judge import Case, add
from text import lines

PAIRS = numpy.array(ENDS)
KNOWN = {"src": SRC, "dst": DST}
DATA = [1.0 + i for i in range(len(ENDS))]


def pairs(folder, array, name="e.npy", refused=(), **options):
    numpy.save(folder / name, array, **options)
    return Case(f"edges:{folder}/{name}", edges=KNOWN, refused=refused)


for type in ("i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", ">i2", ">u4", ">i4", ">i8"):
    add(f"npy, edges: pairs of {type}", pairs, PAIRS.astype(type))
add("npy, edges: shape (2, m)", pairs, PAIRS.T.copy())
add("npy, edges: in Fortran order", pairs, numpy.asfortranarray(PAIRS))
for type in ("<f4", "<f8", ">f8"):
    add(f"npy, edges: whole numbers of {type}", pairs, PAIRS.astype(type))
add("npy, edges: complex", pairs, PAIRS.astype("c16"), refused=("complex",))
add("npy, edges: objects", pairs, PAIRS.astype(object), refused=("object",))
add("npy, edges: times", pairs, PAIRS.astype("datetime64[s]"), refused=("datetime|time",))


def beside(folder, keys, files, refused=(), **known):
    """Edges in text, and arrays beside them."""
    (folder / "e.txt").write_text(lines(head="", by=" "))
    for name, array in files.items():
        if scipy.sparse.issparse(array):
            scipy.sparse.save_npz(folder / name, array)
        elif isinstance(array, dict):
            numpy.savez(folder / name, **array)
        else:
            numpy.save(folder / name, array)
    return Case(
        f"edges:{folder}/e.txt?" + keys.replace("DIR", str(folder)), edges=KNOWN, nodes={"id": NODES, **known} if known else None, refused=refused
    )


X = numpy.array([[v, v / 4, -v] for v in NODES])
for type in ("<f2", "<f4", "<f8", ">f2", ">f4", ">f8", "i1", "<i2", ">i4", "<i8"):
    array = X.astype(type)
    add(f"npy, features of {type}", beside, "features=DIR/x.npy", {"x.npy": array}, features=array.astype(float).tolist())
add("npy, features of bool", beside, "features=DIR/x.npy", {"x.npy": X > 1}, features=(X > 1).astype(float).tolist())
add("npy, features in Fortran order", beside, "features=DIR/x.npy", {"x.npy": numpy.asfortranarray(X)}, features=X.tolist())
add(
    "npy, features, big-endian, in Fortran order", beside, "features=DIR/x.npy", {"x.npy": numpy.asfortranarray(X.astype(">f4"))}, features=X.tolist()
)
add("npy, features of complex numbers", beside, "features=DIR/x.npy", {"x.npy": X.astype("c8")}, refused=("complex",))
add("npy, features with NaN", beside, "features=DIR/x.npy", {"x.npy": numpy.where(X == 2, numpy.nan, X)}, refused=("(?i)nan",))
Y = numpy.array([0, 1, 2, 0, -1, 1])
for type in ("i1", "<i4", ">i8", ">i2", "<f4", "<f8", ">f8"):
    add(f"npy, labels of {type}", beside, "labels=DIR/y.npy", {"y.npy": Y.astype(type)}, label=[None if y < 0 else int(y) for y in Y])
NAMES = ["red", "blue", "red", "green", "blue", "red"]
add("npy, labels of text", beside, "labels=DIR/y.npy", {"y.npy": numpy.array(NAMES)}, label=NAMES)
MASKS = {f"{s}_mask": numpy.array([v % 3 == i for v in NODES]) for i, s in enumerate(("train", "val", "test"))}
SPLITS = [("train", "valid", "test")[v % 3] for v in NODES]
add("npz, masks", beside, "splits=DIR/s.npz", {"s.npz": MASKS}, split=SPLITS)
add(
    "npz, masks in Fortran order",
    beside,
    "splits=DIR/s.npz&split=1",
    {"s.npz": {f"{k}s": numpy.asfortranarray(numpy.stack([~m, m], 1)) for k, m in MASKS.items()}},
    split=SPLITS,
)
add("npz, masks of numbers", beside, "splits=DIR/s.npz", {"s.npz": {k: m.astype("i4") for k, m in MASKS.items()}}, split=SPLITS)

MATRIX = scipy.sparse.coo_array((DATA, (SRC, DST)), shape=(6, 6))
FORMATS = {"CSR": "tocsr", "CSC": "tocsc", "COO": "tocoo"}


def matrix(folder, m, scheme="npz", keys="", weighted=False, refused=(), name="a.npz", **options):
    scipy.sparse.save_npz(folder / name, m, **options)
    known = {**KNOWN, "weight": DATA} if weighted else KNOWN
    return Case(f"{scheme}:{folder}/{name}{keys}", edges=known, refused=refused)


for scheme in ("npz", "edges"):
    for what, to in FORMATS.items():
        add(f"save_npz, {scheme}: {what}", matrix, getattr(MATRIX, to)(), scheme)
        add(f"save_npz, {scheme}: {what}, weights", matrix, getattr(MATRIX, to)(), scheme, "?weight=value", True)
        add(f"save_npz, {scheme}: {what}, spmatrix, not compressed", matrix, getattr(scipy.sparse.coo_matrix(MATRIX), to)(), scheme, compressed=False)
    for type in ("?", "i1", "<f4"):
        add(f"save_npz, {scheme}: CSR of {type}", matrix, MATRIX.tocsr().astype(type), scheme)
    add(f"save_npz, {scheme}: BSR", matrix, MATRIX.tobsr((2, 2)), scheme, refused=("(?i)bsr", "tocsr"))
    add(f"save_npz, {scheme}: DIA", matrix, MATRIX.todia(), scheme, refused=("(?i)dia", "tocsr"))
    add(
        f"save_npz, {scheme}: not square",
        matrix,
        scipy.sparse.csr_array((DATA, (SRC, DST)), shape=(6, 9)),
        scheme,
        refused=("square|6 (x|×|by) 9|shape",),
    )
SPARSE = scipy.sparse.coo_array(numpy.array([[0, 1.5, 0, v] if v % 2 else [0, 0, 0, 0] for v in NODES]))
for what, to in FORMATS.items():
    add(f"save_npz, features: {what}", beside, "features=DIR/x.npz", {"x.npz": getattr(SPARSE, to)()}, features=SPARSE.toarray().tolist())
for type in ("?", "i1", "<f4"):
    m = SPARSE.tocsr().astype(type)
    add(f"save_npz, features: CSR of {type}", beside, "features=DIR/x.npz", {"x.npz": m}, features=m.toarray().astype(float).tolist())
unsorted = scipy.sparse.csr_array((numpy.array([1.0, 2.0, 3.0, 4.0]), numpy.array([3, 0, 2, 2]), numpy.array([0, 2, 4, 4, 4, 4, 4])), shape=(6, 4))
add("save_npz, features: places out of order, and one twice", beside, "features=DIR/x.npz", {"x.npz": unsorted}, features=unsorted.toarray().tolist())


def market(folder, symmetric):
    scipy.io.mmwrite(
        folder / "a.mtx", MATRIX.tocsr() if not symmetric else (MATRIX + MATRIX.T).tocsr(), symmetry="symmetric" if symmetric else "general"
    )
    return Case(f"mtx:{folder}/a.mtx", edges=KNOWN)


add("mmwrite, general", market, False)
add("mmwrite, symmetric", market, True)


def empty(folder, name, uri):
    (folder / name).write_bytes(b"")
    (folder / "e.txt").write_text(lines(head="", by=" "))
    return Case(uri.replace("DIR", str(folder)), refused=(pathlib.Path(name).name, "empty"))


for name, uri in {
    "x.npy": "edges:DIR/e.txt?features=DIR/x.npy",
    "x.npz": "edges:DIR/e.txt?features=DIR/x.npz",
    "y.csv": "edges:DIR/e.txt?labels=DIR/y.csv",
    "a.npz": "npz:DIR/a.npz",
    "a.mtx": "mtx:DIR/a.mtx",
    "p.npy": "edges:DIR/p.npy",
    "t.txt": "edges:DIR/t.txt",
    "t.jsonl": "table:DIR/t.jsonl",
    "t.csv": "table:DIR/t.csv",
}.items():
    add(f"a file of 0 bytes: {name}", empty, name, uri)
