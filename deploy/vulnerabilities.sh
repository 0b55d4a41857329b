#!/usr/bin/env bash
# Looks for known vulnerabilities in the code that the program of this module calls, its modules and the standard library:
#
#   vulnerabilities.sh GOVULNCHECK
#
# VULNERABILITIES names the database: a URL, by default https://vuln.go.dev, or a folder with a copy of it. With
# VULNERABILITIES=unchecked nothing is checked, which the output says, and the status is 0.
set -euo pipefail
tool=${1:?is the program govulncheck}
database=${VULNERABILITIES:-https://vuln.go.dev}
if [ "$database" = unchecked ]; then
  echo "NOT CHECKED: known vulnerabilities, because of VULNERABILITIES=unchecked"
  exit 0
fi
unread() {
  echo "NOT CHECKED: the database of vulnerabilities, $database, cannot be read. Try again where it can, give a folder with a copy of it (VULNERABILITIES=FOLDER), or go on without (VULNERABILITIES=unchecked)." >&2
  exit 1
}
case $database in
  *://*) url=$database ;;
  *)
    # The tool takes a folder without these files for a database that knows no vulnerability.
    for file in db modules vulns; do
      [ -f "$database/index/$file.json" ] || unread
    done
    url=file://$(cd "$database" && pwd)
    ;;
esac
status=0
report=$("$tool" -db "$url" ./... 2>&1) || status=$?
case $status in
  0) echo "no known vulnerability is in code that is called, by $url" ;;
  3) echo "$report" ;;
  *)
    echo "$report"
    if grep -qE 'fetching vulnerabilities|creating client' <<<"$report"; then unread; fi
    ;;
esac >&2
exit $status
