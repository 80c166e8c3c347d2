#!/usr/bin/env bash
# deploy/zipapp.sh FILE.pyz [WHEEL]: one file that any Python from 3.10 on runs, made by shiv (extra release).
# It unpacks itself into ~/.shiv, or SHIV_ROOT, when it first runs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shiv --output-file "${1:?FILE.pyz}" --console-script torchdoctor --python '/usr/bin/env python3' \
    --reproducible --quiet "${2:-$root}"
