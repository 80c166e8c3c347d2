#!/bin/bash
# Explain very many logs as an array of jobs: each task takes its share of the list.
#
#   find /shared/logs -name '*.out' > logs.txt
#   mkdir -p reports && sbatch --array=0-15 slurm_array.sh logs.txt reports
#   torchdoctor stats reports/*.jsonl
#
#SBATCH --job-name=torchdoctor
#SBATCH --cpus-per-task=4
set -euo pipefail

list=$1 folder=$2
task=${SLURM_ARRAY_TASK_ID:?start it with sbatch --array=0-15}
tasks=${SLURM_ARRAY_TASK_COUNT:?start it with sbatch --array=0-15}
first=${SLURM_ARRAY_TASK_MIN:-0}
step=${SLURM_ARRAY_TASK_STEP:-1}
number=$(((task - first) / step))
target=$folder/$number.jsonl

# exit code 2 says that some logs cannot be read; each of those has a line of its own
awk -v "tasks=$tasks" -v "number=$number" 'NR % tasks == number' "$list" | tr '\n' '\0' |
    xargs -0 -r sh -c '"${TORCHDOCTOR:-torchdoctor}" explain --offline --each --jobs "${SLURM_CPUS_PER_TASK:-1}" \
        --format jsonl -- "$@" || [ $? -eq 2 ]' torchdoctor >"$target.part"
mv "$target.part" "$target"
