"""From gitleaks' rule file to torchdoctor/share/secret_rules.tsv, which the redactor reads.

    python benchmarks/convert_secret_rules.py VERSION FILE

FILE is gitleaks.toml, or a program of gitleaks, which holds it. The rules are data under the MIT license,
whose notice lies beside them (secret_rules.LICENSE). What changes: Go's syntax becomes Python's; every repeat
gets a bound, so that a search is linear; a leading ``[\\w.-]{0,50}?``, which only widens what is found,
goes; the end of a token is "no letter, digit, _ or - follows" instead of a list of what may follow, since a
log has brackets and commas there; the frame that a hundred rules share is written « and ». Allow-lists are
left out: a placeholder that is replaced does no harm. Rules that name a path are left out, and those of
LEFT_OUT.
Prints how many rules were taken, and which were not.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).resolve().parent.parent / "torchdoctor" / "share" / "secret_rules.tsv"
LEFT_OUT = {
    "generic-api-key": "any word after key, token or auth: torch's own messages are full of them",
    "private-key": "quadratic in the number of key headers; blocks are found by their structure",
    "curl-auth-header": "the arguments of a command, which torchdoctor/share/secrets.py reads",
    "curl-auth-user": "the arguments of a command, which torchdoctor/share/secrets.py reads",
    "aws-amazon-bedrock-api-key-short-lived": "the prefix alone, without the secret",
}
_BEGIN = "# This file has been auto-generated."
_LEAD = r"[\w.-]{0,50}?"
_JOINT = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
_JOINT_SCOPED = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3})(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
_ENDS = (
    r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""",
    r"""(?:[\x60'"\s;]|\\[nr]|$)""",
    r"(?:[^\w-]|\z)",
    r"(?:[^a-zA-Z0-9+/]|\z)",
)
_MOST = 4000  # characters of one token; none of an issuer is as long
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\(\?[imsU-]+\)|\(\?[imsU-]*:|\(\?P<\w+>|.", re.DOTALL
)
_REPEAT = re.compile(r"\{(\d+),\}")


def main() -> int:
    version, path = sys.argv[1:]
    rules = tomllib.loads(_toml(Path(path).read_bytes()))["rules"]
    lines: list[str] = []
    skipped: list[str] = []
    for rule in rules:
        if "regex" not in rule or "path" in rule or rule["id"] in LEFT_OUT:
            skipped.append(rule["id"])
            continue
        lines.append(_line(rule))
    head = [
        f"# Rules of gitleaks {version} (MIT, Copyright (c) 2019 Zachary Rice, see secret_rules.LICENSE),",
        "# converted by benchmarks/convert_secret_rules.py. Columns: id; keywords, one of which the text",
        "# holds in small letters; least entropy in bits a character; expression, of which the longest group",
        "# is the secret. « and » stand for the frame NAME … = … SECRET.",
    ]
    TABLE.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
    print(f"{len(lines)} rules; left out: {', '.join(skipped)}")
    return 0


def _toml(content: bytes) -> str:
    start = max(content.find(_BEGIN.encode()), 0)
    end = content.find(b"\0", start)
    return content[start : end if end >= 0 else len(content)].decode("utf-8")


def _line(rule: dict[str, Any]) -> str:
    expression = python_expression(rule["regex"])
    expanded = expression.replace("«", "x").replace("»", "x")
    re.compile(expanded, re.ASCII)
    keywords = ",".join(rule["keywords"])
    return "\t".join((rule["id"], keywords, str(rule.get("entropy", 0)), expression))


def python_expression(go: str) -> str:
    """The same language for Python, bounded, with the shared frame as « and »."""
    text = go.removeprefix("(?i)").removeprefix(_LEAD)
    scoped = text.startswith("(?i:" + _LEAD)
    if scoped:
        text = text.replace("(?i:" + _LEAD, "(?i:", 1).replace(_JOINT_SCOPED, ")«", 1)
    text = text.replace(_JOINT, "«")
    for end in _ENDS:
        if text.endswith(end):
            text = text.removesuffix(end) + "»"
    text = _bounded(text.replace("[[:alnum:]]", "[a-zA-Z0-9]").replace(r"\z", r"\Z"))
    return f"(?i:{text})" if go.startswith("(?i)") else text


def _bounded(text: str) -> str:
    """Every repeat with a bound, and a flag in the midst as a group up to the end of the one it stands in."""
    made: list[str] = []
    open_flags = [0]
    for token in _TOKEN.findall(_REPEAT.sub(lambda found: f"{{{found[1]},{_MOST}}}", text)):
        if re.fullmatch(r"\(\?[imsU-]+\)", token):
            made.append(token[:-1] + ":")
            open_flags[-1] += 1
        elif token.startswith("("):
            made.append(token)
            open_flags.append(0)
        elif token == ")":
            made.append(")" * open_flags.pop() + ")")
        elif token == "|" and open_flags[-1]:
            raise ValueError(f"a flag over alternatives: {text}")
        elif token in "+*":
            made.append(f"{{{int(token == '+')},{_MOST}}}")
        else:
            made.append(token)
    return "".join(made) + ")" * open_flags.pop()


if __name__ == "__main__":
    sys.exit(main())
