"""Which files of a folder or an archive are logs or dumps, by their names and their first bytes."""

from __future__ import annotations

LOG_SUFFIXES = (
    ".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".output", ".trace", ".dmesg", ".export",
)  # fmt: skip
_LOG_NAMES = ("stdout", "stderr", "error.json", "dmesg", "syslog", "messages", "nohup.out", "kern.log")
_NO_LOGS = (
    ".py", ".pyc", ".md", ".rst", ".toml", ".yaml", ".yml", ".json", ".ini", ".cfg", ".csv", ".tsv",
    ".html", ".xml", ".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".js", ".ts", ".sh", ".pt", ".pth", ".bin",
    ".ckpt", ".safetensors", ".png", ".jpg", ".jpeg", ".gif", ".pdf", ".so", ".o", ".whl",
    ".a", ".npy", ".npz", ".pkl", ".lock", ".onnx", ".parquet", ".jsonl", ".ipynb", ".journal",
)  # fmt: skip
_RECORD_NAMES = (b"pg_config", b"pg_status", b"entries", b"nccl_comm_state", b"comm_lib_version")
ARCHIVES = (".zip", ".tar", ".tgz", ".txz", ".tbz2", ".tzst")


def may_be_log(name: str) -> bool:
    """True for a name that logs have: a known suffix, or none, whatever it is compressed with."""
    lower = name.lower()
    if lower.endswith(ARCHIVES):
        return True
    from torchdoctor.intake import decompressed

    lower = decompressed.inner_name(lower)
    if lower.endswith(ARCHIVES) or lower.endswith(LOG_SUFFIXES) or lower in _LOG_NAMES or ".log" in lower:
        return not lower.endswith((".py", ".pyc", ".html"))
    if lower.endswith(".json") and ("journal" in lower or lower.startswith("error")):
        return True
    return not (lower.endswith(_NO_LOGS) or "." in lower.rstrip("0123456789").rstrip("."))


def may_be_dump(name: str) -> bool:
    """True for a name that flight records and stack dumps are given, besides those of logs."""
    return name.lower().endswith((".json", ".pkl", ".pickle", ".dump"))


def is_dump(head: bytes) -> bool:
    """True for the first bytes of a flight record, or of a stack dump in JSON."""
    if head[:1] != b"\x80" and head.lstrip()[:1] not in (b"{", b"["):
        return False
    from torchdoctor.intake import flight, spy_json

    if head[:1] == b"\x80":  # any pickle begins like one; these have their first names within some bytes
        return flight.is_record(head) and any(name in head for name in _RECORD_NAMES)
    return flight.is_record(head) or spy_json.is_spy(head)
