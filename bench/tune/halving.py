"""Compares what a search with --halving chooses with what one without it chooses.

    python bench/tune/halving.py build/ndls planetoid:DATA/cora/cora [--seeds 8] [--trials 12,50,100] [--models 10] [OPTION…]

searches with both, for each seed, and trains the chosen settings with that many models on the same split. It prints the mean
accuracy on validation nodes of the models that the searches have not seen, and the processor seconds of the searches. A search
with more trials continues the one with fewer. Labels of test nodes are not looked at. Other options go to ndls tune.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path


def run(words):
    """Runs a command, and returns its processor seconds."""
    p = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(words)} failed with status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


def result(folder):
    """Returns the result of a search."""
    return json.loads((Path(folder) / "tune.json").read_text())


def chosen(folder):
    """Returns the settings of the chosen trial."""
    r = result(folder)
    return tuple((s["name"], s["value"]) for s in r["trials"][r["chosen"] - 1]["settings"])


def spread(values):
    """Spells a mean and its standard error, in points."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{100 * statistics.mean(values):.2f} ± {100 * error:.2f}"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("ndls")
    p.add_argument("dataset")
    p.add_argument("--seeds", type=int, default=8)
    p.add_argument("--first", type=int, default=1, help="the first seed")
    p.add_argument("--trials", default="12,50,100")
    p.add_argument("--models", type=int, default=10, help="models of the chosen settings, the first of which are those of the search")
    p.add_argument("--runs", type=int, default=1, help="models of a trial")
    args, more = p.parse_known_args()
    counts = [int(n) for n in args.trials.split(",")]
    figures = {n: {False: [], True: []} for n in counts}
    seconds = {n: {False: [], True: []} for n in counts}
    for seed in range(args.first, args.first + args.seeds):
        with tempfile.TemporaryDirectory(prefix="ndls-halving-") as scratch:
            common = ["tune", "--dataset", args.dataset, "--batch-size", "0", "--seed", str(seed), "--quiet", *more]
            settings, spent = {}, {False: 0.0, True: 0.0}
            for halving in (False, True):
                for n in counts:
                    folder = f"{scratch}/{halving}"
                    spent[halving] += run([args.ndls, *common, "--run", folder, "--runs", str(args.runs), "--trials", str(n), f"--halving={str(halving).lower()}"])
                    settings[n, halving] = chosen(folder)
                    seconds[n][halving].append(spent[halving])
            found = {}
            for i, one in enumerate(dict.fromkeys(settings.values())):
                folder = f"{scratch}/final-{i}"
                tried = [word for name, value in one for word in ("--try", f"{name}={value}")]
                run([args.ndls, *common, "--run", folder, "--runs", str(args.models), "--search", "grid", "--halving=false", *tried])
                models = result(folder)["trials"][0]["models"]
                found[one] = statistics.mean(m["base"] for m in models if m["run"] >= args.runs)
            for (n, halving), one in settings.items():
                figures[n][halving].append(found[one])
            print(f"seed {seed}: " + "; ".join(
                f"{n} trials: {100 * figures[n][False][-1]:.2f} whole, {100 * figures[n][True][-1]:.2f} halved"
                + (" (the same)" if settings[n, False] == settings[n, True] else "") for n in counts), flush=True)
    print("| trials | whole | halved | difference | CPU s, whole | CPU s, halved |\n|---|---|---|---|---|---|")
    for n in counts:
        whole, halved = figures[n][False], figures[n][True]
        print(f"| {n} | {spread(whole)} | {spread(halved)} | {spread([b - a for a, b in zip(whole, halved)])} "
              f"| {statistics.mean(seconds[n][False]):.0f} | {statistics.mean(seconds[n][True]):.0f} |")


if __name__ == "__main__":
    main()
