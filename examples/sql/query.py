"""SQL over a run directory, by DuckDB.

    python query.py RUN

The tables of a run are Parquet, which DuckDB reads by itself, and Arrow, which it scans through
pyarrow: only the columns and rows that a query needs are read. It needs DuckDB and pyarrow.
"""

import argparse
from pathlib import Path

import duckdb
import pyarrow.dataset as ds

# Views over the files of a run. Columns of ids join them.
VIEWS = """
CREATE VIEW nodes AS FROM read_parquet('{run}/graph/nodes.parquet');
CREATE VIEW edges AS FROM read_parquet('{run}/graph/edges/*.parquet');
CREATE VIEW lsi   AS FROM read_parquet('{run}/lsi/*.parquet');
CREATE VIEW files AS FROM read_parquet('{run}/catalog.parquet');
"""

QUERIES = {
    "K by degree": """
        SELECT floor(log2(degree))::INT AS log2_degree, count(*) AS nodes, round(avg(k), 2) AS mean_k, max(k) AS max_k
        FROM nodes JOIN lsi USING (id) WHERE degree > 0
        GROUP BY 1 ORDER BY 1""",
    "Accuracy on test nodes by K": """
        SELECT k, count(*) AS nodes, round(avg((predictions.label = nodes.label)::INT), 3) AS accuracy
        FROM predictions JOIN nodes USING (id) JOIN lsi USING (id) WHERE split = 'test' AND nodes.label >= 0
        GROUP BY 1 ORDER BY 1""",
    "The least certain predictions": """
        SELECT id, degree, predictions.label AS predicted, round(list_max(probability), 3) AS probability
        FROM predictions JOIN nodes USING (id)
        ORDER BY list_max(probability), id LIMIT 5""",
    "How many neighbours have the same prediction": """
        SELECT a.label AS predicted, count(*) AS edges, round(avg((a.label = b.label)::INT), 3) AS same
        FROM edges JOIN nodes s ON src = s.node JOIN nodes d ON dst = d.node
        JOIN predictions a ON a.id = s.id JOIN predictions b ON b.id = d.id
        GROUP BY 1 ORDER BY 1""",
    "Mean of the first smoothed column by class": """
        SELECT label, count(*) AS nodes, round(avg(feature[1]), 4) AS mean
        FROM smoothed JOIN nodes USING (id) WHERE label >= 0
        GROUP BY 1 ORDER BY 1""",
    "What takes the disk": """
        SELECT kind, count(*) AS files, sum(bytes) AS bytes FROM files GROUP BY 1 ORDER BY bytes DESC""",
}


def open_run(run: str) -> duckdb.DuckDBPyConnection:
    """Returns a connection with a view for each table of a run."""
    connection = duckdb.connect()
    connection.execute(VIEWS.format(run=run.replace("'", "''")))
    for name in ("smoothed", "predictions", "soft_labels"):
        if files := sorted(map(str, Path(run, name).glob("*.arrow"))):
            connection.register(name, ds.dataset(files, format="ipc"))
    return connection


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("run")
    connection = open_run(parser.parse_args().run)
    for title, query in QUERIES.items():
        print(title)
        print(connection.sql(query))


if __name__ == "__main__":
    main()
