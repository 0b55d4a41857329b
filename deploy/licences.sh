#!/usr/bin/env bash
# Copies the licences of all Go modules that are in the program, and that of Go itself, to OUT:
#
#   licences.sh OUT
#
# OUT/MODULE has the files named LICENSE, COPYING, NOTICE, PATENTS and the like that are in the
# module's own folder and in the folders of its packages that are compiled in. OUT/MODULES.txt has
# a line with path and version for each module. A module without such a file must speak of its
# licence in its README, which is then copied; otherwise the script fails.
set -euo pipefail
out=${1:?is the folder to make}
go=${GO:-go}
names='licen[cs]e|copying|notice|patents|unlicense'

rm -rf "$out"
mkdir -p "$out"

# copy takes the files with matching names of folder $1, and puts them below folder $2.
copy() {
  local file found=1
  for file in "$1"/*; do
    [ -f "$file" ] || continue
    if [[ ${file##*/} =~ ^($names)([.-].*)?$ && $file != *.go ]]; then
      install -D -m 644 "$file" "$2/${file##*/}"
      found=0
    fi
  done
  return $found
}
shopt -s nocasematch

# A program for another processor has other packages, and perhaps other modules.
packages=$(for arch in amd64 arm64; do
  CGO_ENABLED=0 GOOS=linux GOARCH=$arch "$go" list -deps -tags=grpcnotrace,tinygo \
    -f '{{with .Module}}{{if not .Main}}{{.Path}}	{{.Version}}	{{.Dir}}	{{$.Dir}}{{end}}{{end}}' ./cmd/ndls
done | LC_ALL=C sort -u)

cut -f 1,2 <<<"$packages" | LC_ALL=C sort -u >"$out/MODULES.txt"
last=
while IFS=$'\t' read -r path _ module package; do
  while [ "$package" != "$module" ]; do
    copy "$package" "$out/$path/${package#"$module"/}" || true
    package=${package%/*}
  done
  [ "$path" != "$last" ] || continue
  last=$path
  # A LICENSE may name the files in this folder, and have no text of its own.
  if [ -d "$module/licenses" ]; then
    install -D -m 644 -t "$out/$path/licenses" "$module"/licenses/*
  fi
  copy "$module" "$out/$path" && continue
  if grep -qi licen "$module/README.md"; then
    install -D -m 644 "$module/README.md" "$out/$path/README.md"
    continue
  fi
  echo "$path has no licence in $module: find out what it is, before the module is distributed" >&2
  exit 1
done <<<"$packages"

install -D -m 644 report/uplot/LICENSE "$out/uplot/LICENSE" # draws the charts of report.html
printf 'uplot\t1.6.32\n' >>"$out/MODULES.txt"

goroot=$("$go" env GOROOT)
printf 'go\t%s\n' "$("$go" env GOVERSION)" >>"$out/MODULES.txt"
copy "$goroot" "$out/go"
