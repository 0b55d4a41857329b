"""Compares what a search that halves its trials chooses with what one that trains all of them in full chooses.

    python bench/tune/halving.py build/ndls planetoid:DATA/cora/cora [--seeds 4] [--trials 12,50,100] [--models 10] [OPTION…]

makes both searches, for each seed, and takes from their trials what each would choose: among all of them (1), among the best
quarter by the short training (4), which is what ndls tune does, and among the best eighth (8). It trains the chosen settings with
that many models on the same split, and prints the mean accuracy on validation nodes of the models that the searches have not
seen. A search with fewer trials is the beginning of one with more. Labels of test nodes are not looked at. Other options go to
ndls tune.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

SHARES = (1, 4, 8)


def run(words):
    """Runs a command, and returns its processor seconds."""
    p = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(words)} failed with status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


def figures(folder, name):
    """Returns the accuracy of the model of each trial, by number; it is below all others if the training failed."""
    trials = (json.loads(p.read_text()) for p in sorted(Path(folder, "trials").glob("*.json")))
    return {t["trial"]: t[name][0]["base"] if t.get(name) else -1 for t in trials}


def ranked(accuracies, n):
    """Returns the numbers of the first n trials, the best first."""
    return sorted(range(1, n + 1), key=lambda t: (-accuracies[t], t))


def spread(values):
    """Spells a mean and its standard error, in points."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{100 * statistics.mean(values):.2f} ± {100 * error:.2f}"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("ndls")
    p.add_argument("dataset")
    p.add_argument("--seeds", type=int, default=4)
    p.add_argument("--first", type=int, default=1, help="the first seed")
    p.add_argument("--trials", default="12,50,100")
    p.add_argument("--models", type=int, default=10, help="models of the chosen settings, the first of which is that of the search")
    args, more = p.parse_known_args()
    counts = sorted(int(n) for n in args.trials.split(","))
    found = {(n, share): [] for n in counts for share in SHARES}
    seconds = {"whole": [], "halved": []}
    for seed in range(args.first, args.first + args.seeds):
        with tempfile.TemporaryDirectory(prefix="ndls-halving-") as scratch:
            common = [args.ndls, "tune", "--dataset", args.dataset, "--batch-size", "0", "--seed", str(seed), "--quiet", *more]
            for name, flag in ("whole", "--halving=false"), ("halved", "--halving"):
                seconds[name].append(run([*common, "--run", f"{scratch}/{name}", "--runs", "1", "--trials", str(counts[-1]), flag]))
            full, short = figures(f"{scratch}/whole", "models"), figures(f"{scratch}/halved", "short")
            settings = {t["trial"]: t["settings"] for t in json.loads(Path(scratch, "whole", "tune.json").read_text())["trials"]}
            chosen, places = {}, {}
            for n in counts:
                order = ranked(short, n)
                for share in SHARES:
                    chosen[n, share] = min(order[: -(-n // share)], key=lambda t: (-full[t], t))
                places[n] = order.index(chosen[n, 1]) + 1
            halved = json.loads(Path(scratch, "halved", "tune.json").read_text())["chosen"]
            if halved != chosen[counts[-1], 4]:
                raise SystemExit(f"the search chose trial {halved}, and its trials say {chosen[counts[-1], 4]}")
            means = {}
            for t in set(chosen.values()):
                tried = [word for s in settings[t] for word in ("--try", f"{s['name']}={s['value']}")]
                run([*common, "--run", f"{scratch}/{t}", "--runs", str(args.models), "--search", "grid", "--halving=false", *tried])
                models = json.loads(Path(scratch, str(t), "tune.json").read_text())["trials"][0]["models"]
                means[t] = statistics.mean(m["base"] for m in models if m["run"] > 0)
            for key, t in chosen.items():
                found[key].append(means[t])
            print(f"seed {seed}: " + "; ".join(
                f"of {n} trials " + ", ".join(f"{chosen[n, s]} ({100 * means[chosen[n, s]]:.2f})" for s in SHARES)
                + f", the first of them at place {places[n]} after the short training" for n in counts), flush=True)
    print("| trials | all | best quarter | − all | best eighth | − all |\n|---|---|---|---|---|---|")
    for n in counts:
        every = found[n, 1]
        print(f"| {n} | {spread(every)} | " + " | ".join(
            f"{spread(found[n, s])} | {spread([b - a for a, b in zip(every, found[n, s])])}" for s in SHARES[1:]) + " |")
    print("processor seconds of a search: " + ", ".join(f"{statistics.mean(v):.0f} {name}" for name, v in seconds.items()))


if __name__ == "__main__":
    main()
