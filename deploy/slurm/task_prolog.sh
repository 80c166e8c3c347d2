#!/bin/sh
# TaskProlog of slurm.conf: can this job's own Python, torch and environment use the node? Runs as the user, before
# each task; the first task of a node looks, the others go on. Ends the job where its environment or the node is
# at fault, and says why in the job's own output. Drains nothing. Switch it off for a job: export TORCHDOCTOR_GATE=off
[ "$TORCHDOCTOR_GATE" = off ] && exit 0
[ "${SLURM_LOCALID:-0}" = 0 ] || exit 0

TORCHDOCTOR=${TORCHDOCTOR:-/opt/torchdoctor/bin/torchdoctor}
folder=${TORCHDOCTOR_FOLDER:-${SLURM_SUBMIT_DIR:-$PWD}/torchdoctor-$SLURM_JOB_ID}
mkdir -p "$folder" 2>/dev/null || folder=${TMPDIR:-/tmp}

set -- gate --tier "${TORCHDOCTOR_GATE:-quick}" --format reason -o "$folder/"
python=$(command -v python || command -v python3)
[ -r "${TORCHDOCTOR_POLICY:=/etc/torchdoctor/policy.toml}" ] && set -- "$@" --policy "$TORCHDOCTOR_POLICY"
[ -n "$python" ] && set -- "$@" --python "$python"
reason=$(timeout -k 2 900 "$TORCHDOCTOR" "$@" 2>/dev/null)
code=$?
case $code in
10 | 11)
    # Slurm shows what follows the word print in the job's output
    echo "print torchdoctor: $reason (verdict in $folder)"
    exit 1
    ;;
0) exit 0 ;;
*)
    echo "print torchdoctor: undetermined (code $code) $reason"
    exit 0
    ;;
esac
