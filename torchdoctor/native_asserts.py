"""How asserts of compiled code put what they wanted and what they say."""

from __future__ import annotations

import re

# of compiled code, behind function and place: "Error in void f() at /x.cpp:65: Error: 'd > 0' failed: no d"
# (faiss), "[10:01:02] /x.cc:65: Check failed: d > 0 (-1 vs. 0) : no d" (DGL, TVM, XGBoost)
_FORMS = (
    r"^Error in .{1,1000}? at \S+:\d+: (?:Error: )?'(?P<wants>.{1,300}?)' failed(?:: (?P<said>.*))?",
    r"^(?:\[[\d:]+\] )?\S+:\d+: Check failed: (?P<wants>.{1,300}?)(?: \([^()\n]*\))?(?: ?: ?(?P<said>.*))?$",
)


def native(text: str) -> tuple[str, str] | None:
    """What an assert of compiled code wanted, and what it says, perhaps ""; None for another text."""
    line = text[:2_000].partition("\n")[0]
    found = next(filter(None, (re.search(form, line) for form in _FORMS)), None)
    return (found["wants"], found["said"] or "") if found is not None else None
