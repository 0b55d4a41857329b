#!/bin/sh
# Prints the folder in which tests make their files, of which there are many and small ones: /dev/shm, where files are in memory,
# if 8 GiB of it and of memory are free, and it takes direct reads and starts programs; else $TMPDIR, or /tmp.
usual=${TMPDIR:-/tmp}
free() {
  [ "$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)" -ge 8388608 ] && [ "$(df --output=avail /dev/shm | tail -1)" -ge 8388608 ]
}
usable() {
  try=$(mktemp -d /dev/shm/ndls-try-XXXXXX) || return 1
  printf '#!/bin/sh\n' >"$try/program" && chmod +x "$try/program" && "$try/program" && dd if="$try/program" of=/dev/null iflag=direct
  status=$?
  rm -r "$try"
  return $status
}
if free && usable; then echo /dev/shm; else echo "$usual"; fi 2>/dev/null
