#!/bin/sh
# Prolog of slurm.conf: may this node start the job? Runs as root, with the system's torchdoctor, beside running jobs.
# health_check.sh runs it as HealthCheckProgram too. Drains the node with the reason that was found, and only for a
# fault of the node itself that code and file agree on, within the budget below. A crash, a hang or a mistake of the
# gate drains nothing and holds up no job. Settings: /etc/torchdoctor/slurm.env.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

TORCHDOCTOR=/opt/torchdoctor/bin/torchdoctor
TORCHDOCTOR_POLICY=/etc/torchdoctor/policy.toml
TORCHDOCTOR_FOLDER=/var/spool/torchdoctor
# the budget: what stops a bad day of the checker from emptying the cluster
TORCHDOCTOR_MOST_DRAINED=5  # nodes that may be drained by this script at a time
TORCHDOCTOR_MOST_AN_HOUR=3  # of these, nodes drained within the last hour
TORCHDOCTOR_MOST_PERCENT=10 # of these, share of all nodes; one node is always allowed
SETTINGS=${TORCHDOCTOR_SETTINGS:-/etc/torchdoctor/slurm.env}
# shellcheck disable=SC1090
[ -r "$SETTINGS" ] && . "$SETTINGS"

node=${SLURMD_NODENAME:-$(hostname -s)}
what=${TORCHDOCTOR_WHAT:-job $SLURM_JOB_ID}
say() { logger -t torchdoctor "$*" 2>/dev/null; printf '%s %s\n' "$(date +%FT%T)" "$*" >>"$TORCHDOCTOR_FOLDER/prolog.log"; }

# nodes that we drained, the first ones first: time, node
ours() {
    sinfo -h -N -t drain,drained,draining -o '%H %N %E' 2>/dev/null | sort -u |
        sed -n 's/^\([^ ]* [^ ]*\) .*td:.*/\1/p'
}

# May this node be drained (before it is: "room") or stay so (afterwards: "kept", it is one of the first)?
within_budget() {
    all=$(ours)
    count=$(sinfo -h -N -o %N 2>/dev/null | sort -u | wc -l)
    share=$((count * TORCHDOCTOR_MOST_PERCENT / 100))
    [ "$share" -ge 1 ] || share=1
    since=$(date -d '1 hour ago' +%FT%T 2>/dev/null)
    recent=$(printf '%s\n' "$all" | awk -v since="$since" '$1 >= since')
    for bound in "$TORCHDOCTOR_MOST_DRAINED" "$share"; do
        "$1" "$bound" "$all" || return 1
    done
    "$1" "$TORCHDOCTOR_MOST_AN_HOUR" "$recent"
}
room() { [ "$(printf '%s' "$2" | grep -c .)" -lt "$1" ]; }
kept() { printf '%s\n' "$2" | head -n "$1" | grep -q " $node\$"; }

mkdir -p "$TORCHDOCTOR_FOLDER" || exit 0
verdict=$TORCHDOCTOR_FOLDER/$node.json
rm -f "$verdict"

set -- gate --tier passive --format reason -o "$verdict"
[ -r "$TORCHDOCTOR_POLICY" ] && set -- "$@" --policy "$TORCHDOCTOR_POLICY"
reason=$(timeout -k 2 20 "$TORCHDOCTOR" "$@" 2>>"$TORCHDOCTOR_FOLDER/prolog.log")
code=$?

case $code in
0) exit 0 ;;
10) ;;
*)
    say "$what on $node: code $code, nothing done. $reason"
    exit 0
    ;;
esac
# the code alone could come from anywhere
if ! grep -q '"verdict":"unfit","exit_code":10,' "$verdict" 2>/dev/null || [ -z "$reason" ]; then
    say "$what on $node: code 10 without a verdict file that says so, nothing done"
    exit 0
fi
# a node that is drained already keeps the reason it has, ours or a person's
case $(sinfo -h -n "$node" -o %T 2>/dev/null) in
*drain*)
    say "$what on $node: it is drained already. $reason"
    exit 0
    ;;
esac
if ! within_budget room; then
    say "$what: $node not drained, the budget is used up. $reason"
    exit 0
fi
# before the script ends with 1: Slurm would write a reason of its own
if ! scontrol update "nodename=$node" state=drain "reason=$reason" 2>>"$TORCHDOCTOR_FOLDER/prolog.log"; then
    say "$what: $node could not be drained. $reason"
    exit 0
fi
# many nodes may find themselves unfit at one moment, each with room for itself: afterwards they can be counted
sleep 1
if ! within_budget kept; then
    scontrol update "nodename=$node" state=undrain 2>>"$TORCHDOCTOR_FOLDER/prolog.log"
    say "$what: $node not drained, the budget is used up. $reason"
    exit 0
fi
say "$what: $node drained. $reason"
exit 1 # a Prolog's job goes back to its queue and starts on other nodes
