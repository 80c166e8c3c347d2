"""Lines of logs with one more kind of secret or name each, and the pieces that nobody else may read."""

from __future__ import annotations

import json
from pathlib import Path

_HELD = Path(__file__).with_name("kinds.jsonl").read_text(encoding="utf-8")
# kind, line, pieces
KINDS = tuple((kind, line, tuple(pieces)) for kind, line, *pieces in map(json.loads, _HELD.splitlines()))
