"""The forms of tokens that gitleaks knows: a table of its rules, read when something is redacted."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "secret_rules.tsv")

# NAME … = … SECRET, as most rules without a form of their own have it
_JOINT = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
_END = r"(?![\w-])"
_LEAST_GROUP = 8  # shorter groups are parts of an expression, not the secret


class IssuerRule(NamedTuple):
    """One form: texts without any of ``keywords`` in small letters need not be searched."""

    id: str
    keywords: tuple[str, ...]
    least_entropy: float
    expression: str


@lru_cache(maxsize=1)
def rules() -> tuple[IssuerRule, ...]:
    """All rules of the table, which is read once."""
    with open(TABLE, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return tuple(
        IssuerRule(
            name,
            tuple(keywords.split(",")),
            float(entropy),
            expression.replace("«", _JOINT).replace("»", _END),
        )
        for name, keywords, entropy, expression in rows
    )


@lru_cache(maxsize=512)
def compiled(expression: str) -> re.Pattern[str]:
    """The expression as Go reads it: its classes hold ASCII only."""
    return re.compile(expression, re.ASCII)


def take_out(text: str, count: Callable[[], str], stand_in: str) -> str:
    """The text with ``count()`` in place of each token of a known form. Linear: every repeat has a bound."""
    low = text.lower()
    for rule in rules():
        if any(keyword in low for keyword in rule.keywords):
            text = compiled(rule.expression).sub(lambda found: _replaced(found, rule, count, stand_in), text)  # noqa: B023  called at once
    return text


def _replaced(found: re.Match[str], rule: IssuerRule, count: Callable[[], str], stand_in: str) -> str:
    whole = found[0]
    start, end = max(
        (found.span(number) for number in range(1, found.re.groups + 1)),
        key=lambda span: span[1] - span[0],
        default=found.span(),
    )
    if end - start < _LEAST_GROUP:
        start, end = found.span()
    secret = found.string[start:end]
    if stand_in in secret or entropy(secret) <= rule.least_entropy:
        return whole
    begin = found.start()
    return whole[: start - begin] + count() + whole[end - begin :]


def entropy(text: str) -> float:
    """Shannon's, in bits a character: low for placeholders such as xxxxxxxx."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values())
