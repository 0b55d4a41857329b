#!/usr/bin/env bash
# Runs ndls.sbatch on a Slurm of three nodes on this host: to its end; with a node
# killed in the middle; drained as before a time limit; with workers that fail; cancelled.
# The outputs must have the SHA-256 of a run without Slurm. Needs root and
#   apt-get install --no-install-recommends slurmctld slurmd slurm-client munge
#
# usage: test.sh NDLS
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
NDLS=$(realpath "${1:?usage: test.sh NDLS}")
export NDLS
for program in slurmctld slurmd sbatch munged; do
  command -v $program >/dev/null || { echo "$program is missing: apt-get install --no-install-recommends slurmctld slurmd slurm-client munge" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "slurmd must be root here" >&2; exit 1; }

dir=$(mktemp -d)
export SLURM_CONF=$dir/slurm.conf
unset "${!SBATCH_@}" TMPDIR
nodes=(w1 w2 w3)
port=$((20000 + $$ % 10000))

cleanup() {
  status=$?
  if [ $status != 0 ]; then tail -n 60 "$dir"/*.out 2>/dev/null || true; fi
  scancel --user=root --quiet 2>/dev/null || true
  for pidfile in "$dir"/pid/*.pid; do
    if [ -e "$pidfile" ]; then kill "$(cat "$pidfile")" 2>/dev/null || true; fi
  done
  sleep 1
  rm -rf "$dir"
  exit $status
}
trap cleanup EXIT

# A Slurm of its own: its munge key, its ports, its folders.
mkdir -p "$dir"/{pid,state,log,munge} "$dir"/spool/{w1,w2,w3}
head -c 128 /dev/urandom >"$dir/munge/key"
chmod 0400 "$dir/munge/key"
chmod 0755 "$dir" "$dir/munge"
cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
AuthType=auth/munge
CredType=cred/munge
# cred_expire is also how long a requeued job waits.
AuthInfo=socket=$dir/munge/socket,cred_expire=5
SlurmUser=root
SlurmdUser=root
SlurmctldPort=$port
SlurmctldPidFile=$dir/pid/slurmctld.pid
SlurmdPidFile=$dir/pid/slurmd.%n.pid
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=2
SlurmdTimeout=10
InactiveLimit=0
KillWait=10
MinJobAge=600
NodeName=w[1-3] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 3))] CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=debug Nodes=w[1-3] Default=YES MaxTime=INFINITE State=UP
CONF
munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/pid/munged.pid" \
  --log-file="$dir/log/munged.log" --seed-file="$dir/munge/seed"
slurmctld -c

# until_true SECONDS COMMAND waits for a command to succeed.
until_true() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    if [ $SECONDS -ge $deadline ]; then echo "timed out: $*" >&2; return 1; fi
    sleep 0.1
  done
}
field() { scontrol show job "$1" --oneliner | sed -n "s/.*\b$2=\([^ ]*\).*/\1/p"; } # JOB FIELD
in_state() { [[ " $2 " == *" $(field "$1" JobState) "* ]]; }                        # JOB STATES
all_idle() { [ "$(sinfo --noheader --Node --states=idle --format=%N | wc -l)" = ${#nodes[@]} ]; }

slurm() { # NODE
  until_true 20 slurmd -N "$1" -c
}
for node in "${nodes[@]}"; do slurm "$node"; done
until_true 60 all_idle

options=(--dataset synthetic:nodes=60000,edges=600000,features=64,classes=8,seed=1 --epsilon 0.01 --runs 2 --epochs 30)

# sums lists the SHA-256 of every output of a run.
sums() { # RUN
  (cd "$1" && find graph lsi smoothed soft_labels model predictions -type f -print0 | sort -z | xargs -0 sha256sum)
}

# submit prints the number of a job.
submit() { # NAME NODES
  sbatch --parsable --job-name="$1" --nodes="$2" --cpus-per-task=1 --mem=1000M --output="$dir/$1.out" --chdir="$dir" \
    "$here/ndls.sbatch" "${options[@]}" --run "$dir/$1" --workers "$2"
}

completes() { # JOB NAME RESTARTS
  until_true 300 in_state "$1" "COMPLETED FAILED CANCELLED NODE_FAIL TIMEOUT"
  echo "$2: $(field "$1" JobState), restarts $(field "$1" Restarts), exit $(field "$1" ExitCode), nodes $(field "$1" NodeList)"
  in_state "$1" COMPLETED
  [ "$(field "$1" Restarts)" = "$3" ]
  diff <(echo "$expected") <(sums "$dir/$2")
}

# processes lists those of a job on a node.
processes() { # JOB NODE
  local environ vars
  for environ in /proc/[0-9]*/environ; do
    vars=$(tr '\0' '\n' 2>/dev/null <"$environ") || continue
    if grep -qx "SLURM_JOB_ID=$1" <<<"$vars" && grep -qx "SLURMD_NODENAME=$2" <<<"$vars"; then
      tr -dc 0-9 <<<"$environ"
      echo
    fi
  done
}

# stopped: a process of the job on the node has stopped itself, as it was told to.
stopped() { # JOB NODE
  local pid
  for pid in $(processes "$1" "$2"); do
    if grep -q '^State:.T' "/proc/$pid/status" 2>/dev/null; then return 0; fi
  done
  return 1
}

# kill_node kills the slurmd of a node and everything of the job there, as a power
# failure would: first the slurmstepd, which would report the other deaths.
kill_node() { # JOB NODE
  local pid parent parents=() pids
  pids=$(processes "$1" "$2")
  for pid in $pids; do
    parent=$(awk '/^PPid:/ {print $2}' "/proc/$pid/status")
    if grep -q slurmstepd "/proc/$parent/comm"; then parents+=("$parent"); fi
  done
  [ ${#parents[@]} -gt 0 ]
  kill -9 "$(cat "$dir/pid/slurmd.$2.pid")" "${parents[@]}"
  kill -9 $pids
}

# under_way: K is known, the rest is still to do.
under_way() { compgen -G "$dir/$1/lsi/*.parquet" >/dev/null; } # NAME

"$NDLS" run "${options[@]}" --run "$dir/single" --memory 488MiB --threads 2 --quiet >/dev/null
expected=$(sums "$dir/single")

job=$(submit whole 3)
completes "$job" whole 0

# The worker on w2 stops as it is given its second task, and is killed holding it.
cat >"$dir/stops" <<STOPS
#!/bin/bash
if [ "\$SLURMD_NODENAME" = w2 ] && [ -z "\${SLURM_RESTART_COUNT:-}" ]; then export NDLS_HOOK=next-done:2:stop; fi
exec "$NDLS" "\$@"
STOPS
chmod +x "$dir/stops"
job=$(NDLS=$dir/stops submit killed 2)
until_true 120 stopped "$job" w2
kill_node "$job" w2
completes "$job" killed 1
[ "$(field "$job" NodeList)" = "w[1,3]" ]
slurm w2
until_true 60 all_idle

job=$(submit drained 3)
until_true 120 under_way drained
scancel --batch --signal=USR1 "$job"
completes "$job" drained 1

# Workers that fail must not come back for ever.
cat >"$dir/fails" <<FAILS
#!/bin/bash
if [ "\$1" = worker ]; then exit 7; fi
exec "$NDLS" "\$@"
FAILS
chmod +x "$dir/fails"
job=$(NDLS=$dir/fails submit failing 2)
until_true 60 in_state "$job" FAILED
echo "failing: $(field "$job" JobState), restarts $(field "$job" Restarts), exit $(field "$job" ExitCode)"
[ "$(field "$job" Restarts) $(field "$job" ExitCode)" = "0 7:0" ]
until_true 60 all_idle

job=$(submit cancelled 3)
until_true 120 under_way cancelled
scancel "$job"
until_true 60 in_state "$job" CANCELLED
until_true 60 all_idle
in_state "$job" CANCELLED # still
echo "cancelled: $(field "$job" JobState), restarts $(field "$job" Restarts)"
