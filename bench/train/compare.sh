#!/bin/sh
# Usage: bench/train/compare.sh [PYTHON] [ROUNDS] [ROWS]
# Epochs of the default build, of the openblas build and of PyTorch, in turn.
set -eu
python=${1:-python3}
rounds=${2:-5}
rows=${3:-100000}
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
go build -o "$build/gonum" "$here"
go build -tags openblas -o "$build/openblas" "$here"
for _ in $(seq "$rounds"); do
	printf 'gonum\t' && "$build/gonum" -rows "$rows" -epochs 2
	printf 'openblas\t' && "$build/openblas" -rows "$rows"
	printf 'torch\t' && "$python" "$here/epoch.py" "$rows"
done
