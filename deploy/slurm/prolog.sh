#!/bin/sh
# Prolog of slurm.conf: may this node start the job? Runs as root, with the system's torchdoctor, beside running jobs.
# Drains the node with the reason that was found, and only for a fault of the node itself that code and file agree on.
# A crash, a hang or a mistake of the gate drains nothing and holds up no job. Settings: /etc/torchdoctor/slurm.env.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

TORCHDOCTOR=/opt/torchdoctor/bin/torchdoctor
TORCHDOCTOR_POLICY=/etc/torchdoctor/policy.toml
TORCHDOCTOR_FOLDER=/var/spool/torchdoctor
TORCHDOCTOR_MOST_DRAINED=5 # nodes that may be drained by this script at a time: stops a bad day of the checker
SETTINGS=${TORCHDOCTOR_SETTINGS:-/etc/torchdoctor/slurm.env}
# shellcheck disable=SC1090
[ -r "$SETTINGS" ] && . "$SETTINGS"

say() { logger -t torchdoctor "$*" 2>/dev/null; printf '%s %s\n' "$(date +%FT%T)" "$*" >>"$TORCHDOCTOR_FOLDER/prolog.log"; }

[ -n "$SLURMD_NODENAME" ] || exit 0
mkdir -p "$TORCHDOCTOR_FOLDER" || exit 0
verdict=$TORCHDOCTOR_FOLDER/$SLURMD_NODENAME.json
rm -f "$verdict"

set -- gate --tier passive --format reason --verdict-file "$verdict"
[ -r "$TORCHDOCTOR_POLICY" ] && set -- "$@" --policy "$TORCHDOCTOR_POLICY"
reason=$(timeout -k 2 20 "$TORCHDOCTOR" "$@" 2>>"$TORCHDOCTOR_FOLDER/prolog.log")
code=$?

case $code in
0) exit 0 ;;
10) ;;
*)
    say "job $SLURM_JOB_ID on $SLURMD_NODENAME: code $code, nothing done. $reason"
    exit 0
    ;;
esac
# the code alone could come from anywhere
if ! grep -q '"verdict":"unfit","exit_code":10,' "$verdict" 2>/dev/null || [ -z "$reason" ]; then
    say "job $SLURM_JOB_ID on $SLURMD_NODENAME: code 10 without a verdict file that says so, nothing done"
    exit 0
fi
drained=$(sinfo -h -N -t drain,drained,draining -o '%N %E' 2>/dev/null | sort -u | grep -c ' td:')
if [ "${drained:-0}" -ge "$TORCHDOCTOR_MOST_DRAINED" ]; then
    say "job $SLURM_JOB_ID on $SLURMD_NODENAME: $drained nodes are drained already, not drained. $reason"
    exit 0
fi
# before the script ends with 1: Slurm would write a reason of its own
if scontrol update "nodename=$SLURMD_NODENAME" state=drain "reason=$reason" 2>>"$TORCHDOCTOR_FOLDER/prolog.log"; then
    say "job $SLURM_JOB_ID: $SLURMD_NODENAME drained. $reason"
    exit 1 # the job goes back to its queue and starts on other nodes
fi
say "job $SLURM_JOB_ID: $SLURMD_NODENAME could not be drained. $reason"
exit 0
