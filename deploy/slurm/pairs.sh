#!/bin/sh
# Which node of this allocation breaks a job that only fails across nodes? To be run in the job's allocation, in its
# environment: salloc -N 8 … pairs.sh FOLDER, FOLDER on a disk that all nodes see. Two or three rounds of about a
# minute, each node in one test at a time. Ends with the exit code of `gate pairs`: 0 all work, 10 a node is to
# blame, 12 the network is, or it could not be determined.
TORCHDOCTOR=${TORCHDOCTOR:-/opt/torchdoctor/bin/torchdoctor}
PYTHON=${PYTHON:-$(command -v python || command -v python3)} # the job's own
folder=${1:?the folder for the results, on a disk that all nodes see}
limit=${TORCHDOCTOR_PAIR_LIMIT:-60}
port=${TORCHDOCTOR_PAIR_PORT:-29555}
processes=${SLURM_GPUS_ON_NODE:-1} # one for each GPU of a node
mkdir -p "$folder" || exit 2
program=$("$TORCHDOCTOR" gate pairs --program) || exit 70

run() { # nodes with commas, how many, the name of the file, a port
    # the name that the other nodes reach the first one by
    address=$(scontrol show node "${1%%,*}" 2>/dev/null | sed -n 's/.*NodeAddr=\([^ ]*\).*/\1/p')
    TORCHDOCTOR_PAIR=$1 MASTER_ADDR=${address:-${1%%,*}} MASTER_PORT=$4 timeout -k 5 "$((limit + 60))" \
        srun --overlap --exact -N "$2" --ntasks-per-node "$processes" -w "$1" \
        "$PYTHON" "$program" "$folder" "$limit" >"$folder/$3.log" 2>&1
    code=$?
    [ -e "$folder/$3.pair.json" ] && return
    # nobody spoke: it was not started, or not let live; nobody is guilty of that
    names=$(printf '%s' "$1" | sed 's/,/","/g')
    printf '{"schema":"torchdoctor.pair/1","nodes":["%s"],"passed":null,"reason":"no result, srun ended with %s","time_s":%s}\n' \
        "$names" "$code" "$(date +%s)" >"$folder/.$3" && mv "$folder/.$3" "$folder/$3.pair.json"
}

while pairs=$("$TORCHDOCTOR" gate pairs "$folder" --nodes "$SLURM_JOB_NODELIST" --next) && [ -n "$pairs" ]; do
    number=0
    for pair in $pairs; do
        run "$pair" 2 "${pair%,*}+${pair#*,}" "$((port + number))" &
        number=$((number + 1))
    done
    wait
done
"$TORCHDOCTOR" gate pairs "$folder" --nodes "$SLURM_JOB_NODELIST" --format exclude >/dev/null
if [ $? -eq 0 ] && [ "$SLURM_JOB_NUM_NODES" -gt 2 ]; then
    everybody=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | paste -sd, -)
    run "$everybody" "$SLURM_JOB_NUM_NODES" "all-$SLURM_JOB_NUM_NODES" "$port"
fi
set -- gate pairs "$folder" --nodes "$SLURM_JOB_NODELIST"
[ -r /etc/slurm/topology.conf ] && set -- "$@" --switches /etc/slurm/topology.conf
exec "$TORCHDOCTOR" "$@"
