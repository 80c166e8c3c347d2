#!/usr/bin/env bash
# What action.yml runs: explain the logs, check the runner. Ends with what `check` found, else with 0.
set -euo pipefail

doctor=$(command -v torchdoctor || true)
if [ -z "$doctor" ]; then
    # an environment of its own: the job's torch stays as it is
    python3 -m venv "$RUNNER_TEMP/torchdoctor"
    "$RUNNER_TEMP/torchdoctor/bin/pip" install --quiet --disable-pip-version-check \
        "${TD_PACKAGE:-$(dirname "$0")/../..}"
    doctor="$RUNNER_TEMP/torchdoctor/bin/torchdoctor"
fi

logs=()
while IFS= read -r line; do
    if [ -n "$line" ]; then logs+=("$line"); fi
done <<<"${TD_LOGS:-}"
if [ "${#logs[@]}" -gt 0 ]; then
    "$doctor" explain --format github -- "${logs[@]}"
    rule=$("$doctor" explain --format json -- "${logs[@]}" |
        python3 -c 'import json, sys; d = json.load(sys.stdin)["diagnoses"]; print(d[0]["rule"] if d else "")')
    echo "rule=$rule" >>"$GITHUB_OUTPUT"
fi
if [ "${TD_CHECK:-false}" = true ]; then
    "$doctor" check --format github ${TD_PYTHON:+--python "$TD_PYTHON"}
fi
