"""What float16 rows change: smoothed rows, K and accuracy, beside float32.

    python bench/precision/precision.py build/ndls DATASET...

runs each dataset URI in both precisions and prints a Markdown table. Rows of sgc
after 10, 50 and 200 hops are compared as ||float16 - float32|| / ||float32||; float32 itself
is far closer to float64 than float16 is to float32. Needs NumPy and pyarrow.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import pyarrow.parquet as pq

HOPS = (10, 50, 200)


def ndls(binary: str, *args: str) -> None:
    subprocess.run([binary, *args, "--quiet", "--memory", "2GiB"], check=True, stdout=subprocess.DEVNULL)


def table(run: pathlib.Path) -> np.ndarray:
    parts = sorted((run / "lsi").glob("*.parquet"))
    return np.concatenate([pq.read_table(p)["k"].to_numpy() for p in parts])


def rows(binary: str, run: pathlib.Path, hops: int, precision: str) -> np.ndarray:
    """The rows of sgc after some hops, in order of input id."""
    ndls(binary, "smooth", "--run", str(run), "--rule", "sgc", "--hops", str(hops), "--precision", precision, "--resume=false")
    out = run / "rows.npy"
    ndls(binary, "export", "--run", str(run), "--what", "smoothed", "--format", "npy", "--out", str(out))
    values = np.load(out).astype(np.float64)
    out.unlink()
    return values


def accuracy(run: pathlib.Path) -> str:
    base = json.loads((run / "report.json").read_text())["accuracy"]["base"]
    return ", ".join(f"{100 * base[s]['mean']:.2f} ± {100 * base[s]['std']:.2f}" for s in ("valid", "test"))


def measure(binary: str, dataset: str, options: list[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        runs = {p: pathlib.Path(folder) / p for p in ("float32", "float16")}
        for precision, run in runs.items():
            ndls(binary, "run", "--dataset", dataset, "--run", str(run), "--precision", precision, *options)
        k32, k16 = (table(r) for r in runs.values())
        accuracies = [accuracy(r) for r in runs.values()]
        errors = []
        for hops in HOPS:
            want, got = (rows(binary, r, hops, p) for p, r in runs.items())
            norms = np.linalg.norm(want, axis=1)
            errors.append(np.mean((np.linalg.norm(got - want, axis=1) / norms)[norms > 0]))
    name = dataset.rsplit("/", 1)[-1]
    return " | ".join(
        ["", name, *(f"{e:.1e}" for e in errors), f"{np.mean(k32 != k16):.2%}", str(np.abs(k32 - k16).max()), *accuracies, ""]
    ).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ndls")
    parser.add_argument("dataset", nargs="+")
    parser.add_argument("--option", action="append", default=[], help="for ndls run, such as --option=--runs=3")
    args = parser.parse_args()
    print("| dataset |", " | ".join(f"{h} hops" for h in HOPS), "| K differs | by at most | float32: valid, test | float16: valid, test |")
    print("|" + "---|" * (len(HOPS) + 5))
    for dataset in args.dataset:
        print(measure(args.ndls, dataset, args.option), flush=True)


if __name__ == "__main__":
    main()
