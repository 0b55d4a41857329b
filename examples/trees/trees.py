"""Random forests and gradient boosted trees on rows that `ndls` has smoothed.

    python trees.py --rows smoothed.npy --nodes nodes.npy --model forest|xgboost --out FOLDER [--trials 6] [--runs 3]

ROWS and NODES are exports of a run: row i of the one and entry i of the other belong to the i-th
smallest id. Options of the model are drawn at random, --trials times, and chosen by the accuracy
on the validation nodes. Then --runs models with the chosen options, each with a seed of its own,
predict all nodes: FOLDER gets their soft labels, model-1.parquet, model-2.parquet and so on, which
`ndls run --soft-labels` takes, and chosen.json. Test nodes are predicted, and never compared with
their labels. It needs NumPy, PyArrow, and scikit-learn or XGBoost.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# What is drawn for each model, at random; the first trial has the first value of each.
SPACE = {
    "forest": {
        "n_estimators": [200, 400],
        "max_features": ["sqrt", 0.05, 0.1, 0.3],
        "min_samples_leaf": [1, 2, 4],
        "max_depth": [None, 8, 16],
    },
    "xgboost": {
        "n_estimators": [100, 200],
        "max_depth": [4, 2, 6],
        "learning_rate": [0.1, 0.05, 0.3],
        "subsample": [0.8, 0.5, 1.0],
        "colsample_bytree": [0.3, 0.1, 1.0],
    },
}


def make(model, option, seed, threads, rows):
    """Returns a model that is not trained."""
    if model == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(**option, random_state=seed, n_jobs=threads)
    from xgboost import XGBClassifier

    # Its threads wait for each other at every level of a tree, which is slower than one thread
    # where a level has few rows.
    return XGBClassifier(**option, tree_method="hist", random_state=seed, n_jobs=threads if rows > 10_000 else 1)


def draw(space, trials, seed):
    """Returns that many different options, the first of which has the first value of each."""
    random = np.random.default_rng(seed)
    options = [{name: values[0] for name, values in space.items()}]
    for _ in range(100 * trials):
        if len(options) >= trials:
            break
        option = {name: values[random.integers(len(values))] for name, values in space.items()}
        if option not in options:
            options.append(option)
    return options


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--rows", required=True, help="ndls export --what smoothed --format npy")
    p.add_argument("--nodes", required=True, help="ndls export --what nodes --format npy")
    p.add_argument("--model", required=True, choices=sorted(SPACE))
    p.add_argument("--out", required=True, help="folder for soft labels")
    p.add_argument("--trials", type=int, default=6, help="options that are tried")
    p.add_argument("--runs", type=int, default=3, help="models with the chosen options")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=None)
    args = p.parse_args()

    rows, nodes = np.load(args.rows, mmap_mode="r"), np.load(args.nodes)
    if len(rows) != len(nodes):
        raise SystemExit(f"{args.rows} has {len(rows)} rows for {len(nodes)} nodes: smooth with --targets all")
    label, split = np.asarray(nodes["label"], dtype=np.int64), nodes["split"]
    train, valid = (np.flatnonzero((split == name) & (label >= 0)) for name in (b"train", b"valid"))
    # Boosting wants classes 0, 1, …; a class that no training node has is never predicted.
    classes, y = np.unique(label[train], return_inverse=True)
    x, x_valid = np.asarray(rows[train]), np.asarray(rows[valid])

    tried = []
    for option in draw(SPACE[args.model], max(args.trials, 1), args.seed):
        model = make(args.model, option, args.seed, args.threads, len(x)).fit(x, y)
        right = classes[model.predict_proba(x_valid).argmax(1)] == label[valid] if len(valid) else np.zeros(1)
        tried.append({"valid": float(np.mean(right)), "option": option})
        print(f"valid {100 * tried[-1]['valid']:.2f}  {option}", flush=True)
    chosen = max(tried, key=lambda t: t["valid"])["option"]  # the first of equals

    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    for run in range(args.runs):
        model = make(args.model, chosen, args.seed + run, args.threads, len(x)).fit(x, y)
        soft = np.zeros((len(nodes), int(label.max()) + 1), dtype=np.float32)
        for lo in range(0, len(nodes), 4096):
            soft[lo : lo + 4096, classes] = model.predict_proba(np.asarray(rows[lo : lo + 4096]))
        lists = pa.FixedSizeListArray.from_arrays(soft.reshape(-1), soft.shape[1])
        pq.write_table(pa.table({"id": nodes["id"].astype(np.int64), "probability": lists}), out / f"model-{run + 1}.parquet")
    (out / "chosen.json").write_text(json.dumps({"model": args.model, "option": chosen, "trials": tried}, indent=1) + "\n")
    print(f"chosen: {chosen}")


if __name__ == "__main__":
    main()
