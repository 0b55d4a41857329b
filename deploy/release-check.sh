#!/usr/bin/env bash
# Makes the release of HEAD twice, in two clones, compares the bytes, and tries every file of it:
#
#   release-check.sh TOOLS
#
# TOOLS is the folder .tools, whose programs and environments both clones use.
set -euo pipefail
tools=${1:?is the folder with goreleaser and the others}
source=$(git rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

for n in first second; do
  echo "== the $n build"
  git clone --quiet "$source" "$work/$n"
  ln -s "$tools" "$work/$n/.tools"
  make -C "$work/$n" release >"$work/$n.log" 2>&1 || { tail -n 40 "$work/$n.log" >&2; exit 1; }
done
echo "== both have the same bytes"
diff <(cd "$work/first/dist" && sha256sum -- *) <(cd "$work/second/dist" && sha256sum -- *)
make -C "$work/first" --no-print-directory release-try
