"""Explain the logs below a folder with Ray Data, one report per line on standard output.

    python ray_data.py /shared/logs > reports.jsonl && torchdoctor stats reports.jsonl

Every node needs torchdoctor in its environment, and the folder. For logs in an object store use
ray.data.read_binary_files(address, include_paths=True) and report_lines(batch["path"], batch["bytes"]).
"""

from __future__ import annotations

import sys
from typing import Any

from torchdoctor.fleet.batch import report_lines
from torchdoctor.intake import files_below


def explain(batch: dict[str, Any]) -> dict[str, Any]:
    return {"report": report_lines([str(path) for path in batch["path"]])}


def main() -> None:
    import ray

    paths = [{"path": path} for path in files_below(sys.argv[1])]
    blocks = max(1, len(paths) // 64)
    reports = ray.data.from_items(paths, override_num_blocks=blocks).map_batches(explain, batch_size=64)
    for row in reports.iter_rows():
        print(row["report"])


if __name__ == "__main__":
    main()
