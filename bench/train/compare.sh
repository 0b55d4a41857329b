#!/bin/sh
# Usage: bench/train/compare.sh [PYTHON] [ROUNDS] [ROWS]
# Epochs, predictions and ten models of Cora's shape, of ndls and of PyTorch, in turn.
set -eu
python=${1:-python3}
rounds=${2:-5}
rows=${3:-100000}
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
go build -C "$here" -o "$build/train" .
for _ in $(seq "$rounds"); do
	for threads in 1 2; do
		printf 'ndls\t%s\tpapers\t' "$threads" && "$build/train" -threads "$threads" -rows "$rows"
		printf 'torch\t%s\tpapers\t' "$threads" && "$python" "$here/epoch.py" papers "$threads" "$rows"
		printf 'ndls\t%s\tcora\t' "$threads" && "$build/train" -shape cora -threads "$threads"
		printf 'torch\t%s\tcora\t' "$threads" && "$python" "$here/epoch.py" cora "$threads"
	done
done
