"""What ``dcgmi diag`` says of every GPU: one line of JSON for each of its results.

Called as ``python dcgm.py LEVEL SECONDS GPUS FILE``; GPUS is a list with commas, or empty for all. The
answer is read as it is built, not by one version's form: 3.x names GPUs in "gpu_ids", 4.x as entities; both
put words before the JSON, and null into its lists.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

PLACES = "/usr/bin:/usr/local/bin:/usr/local/dcgm/bin"
GRACE_S = 5.0
MOST_BYTES = 16 << 20


def write(record: dict[str, object]) -> None:
    with open(sys.argv[-1], "a", encoding="utf-8") as stream:
        stream.write(json.dumps(record) + "\n")


def ask(program: str, level: str, limit_s: float, gpus: str) -> tuple[int, str, str, bool]:
    """Exit code, what it printed, what it complained of, and whether it had to be stopped."""
    argv = [program, "diag", "-r", level, "-j", *(["-i", gpus] if gpus else [])]
    late = False
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err) as running:
            try:
                running.wait(limit_s)
            except subprocess.TimeoutExpired:
                late = True
                # so told, dcgmi has its service end the tests, which are no children of ours
                running.send_signal(signal.SIGINT)
                try:
                    running.wait(GRACE_S)
                except subprocess.TimeoutExpired:
                    running.kill()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(MOST_BYTES).decode("utf-8", "replace"))
    return running.returncode, texts[0], texts[1], late


def results(data: object, category: str = "", test: str = "") -> Iterator[dict[str, object]]:
    """Every object with a status, wherever it lies, with the names of its test and category."""
    if isinstance(data, list):
        for one in data:
            yield from results(one, category, test)
    elif isinstance(data, dict):
        category = str(data.get("category", category))
        test = str(data.get("name", test))
        if isinstance(data.get("status"), str) and test:
            yield {
                "category": category, "test": test, "gpus": gpus_of(data), "status": data["status"],
                "warnings": texts_of(data.get("warnings")), "info": texts_of(data.get("info")),
                "severity": severity_of(data.get("warnings")),
            }  # fmt: skip
        for key, value in data.items():
            if key not in ("warnings", "info") and isinstance(value, (dict, list)):
                yield from results(value, category, test)


def gpus_of(data: dict[str, object]) -> list[int]:
    """DCGM's numbers of the GPUs that a result is about; none for a summary over all."""
    if "entity_id" in data:
        kind, number = data.get("entity_group"), data["entity_id"]
        return [number] if kind == "GPU" and isinstance(number, int) else []
    told = str(data.get("gpu_ids", data.get("gpu_id", "")))
    return [int(one) for one in told.split(",") if len(one) < 10 and one.strip().isdecimal()]


def texts_of(value: object) -> list[str]:
    """Warnings are texts, or objects with a text."""
    found = value if isinstance(value, list) else [value] if value else []
    return [str(one.get("warning", one) if isinstance(one, dict) else one)[:500] for one in found][:8]


def severity_of(value: object) -> int:
    """The gravest that DCGM 4 gives with its warnings, -1 for none."""
    found = (
        [one.get("error_severity") for one in value if isinstance(one, dict)]
        if isinstance(value, list)
        else []
    )
    return max((one for one in found if isinstance(one, int)), default=-1)


def main() -> None:
    level, limit_s, gpus = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    path = os.environ.get("PATH", "") + ":" + PLACES
    program = shutil.which("dcgmi", path=path)
    if program is None:
        write({"name": "dcgm.error", "value": "dcgmi is not installed"})
        return
    code, out, err, late = ask(program, level, limit_s, gpus)
    words = " ".join((err or out).split())[:300]
    if late:
        write({"name": "dcgm.error", "value": f"not finished within {limit_s:g} s"})
        return
    try:
        data = json.loads(out[out.index("{") :])
    except ValueError:
        write({"name": "dcgm.error", "value": f"no JSON, exit code {code}: {words}"})
        return
    found = list(results(data))
    failure = error_of(data)
    if failure or not found:
        write({"name": "dcgm.error", "value": failure or f"no result, exit code {code}: {words}"})
    write({"name": "dcgm.exit_code", "value": code})
    write({"name": "dcgm.results", "value": found})


def error_of(data: object) -> str:
    if isinstance(data, dict):
        for key, value in data.items():
            if key.lower().replace(" ", "_") in ("runtime_error", "error") and isinstance(value, str):
                return value[:300]
            found = error_of(value)
            if found:
                return found
    return ""


if __name__ == "__main__":
    main()
