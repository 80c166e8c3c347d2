#!/bin/sh
# HealthCheckProgram of slurm.conf: is this node still fit, beside its jobs or without any? Runs as root every
# HealthCheckInterval seconds, for at most 60. Its exit code means nothing to Slurm: the node is drained by scontrol,
# with our reason, and running jobs go on to their end.
settings=${TORCHDOCTOR_SETTINGS:-/etc/torchdoctor/slurm.env}
# shellcheck disable=SC1090
[ -r "$settings" ] && . "$settings"
TORCHDOCTOR_WHAT="health check" "${TORCHDOCTOR_PROLOG:-/etc/slurm/torchdoctor/prolog.sh}"
exit 0
