"""Credentials: what the tokens of each issuer look like, and what stands before those that have no form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STAND_IN = "REDACTED"

# Tokens that are known by their own form, whatever stands before them.
_ISSUED = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"hf_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|sk-(?:ant-|proj-|or-)?[\w-]{16,}|nvapi-[\w-]{16,}|r8_\w{20,}|gsk_\w{20,}|xai-\w{20,}"
    r"|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}"  # Slack
    r"|A[KS]IA[A-Z0-9]{12,}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"  # AWS, Google
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|dop_v1_[a-f0-9]{40,}|dapi[a-f0-9]{32}|dckr_pat_[\w-]{20,}"
    r"|\d{8,10}:AA[\w-]{30,}"  # Telegram
    r"|[MN][A-Za-z\d]{23,27}\.[\w-]{6}\.[\w-]{27,}"  # Discord
    r"|S[GK]\.[\w-]{16,}\.[\w-]{16,}|SG\.[\w-]{20,}|[sr]k_(?:live|test)_\w{16,}"  # SendGrid, Stripe
    r"|hv[sb]\.[\w-]{20,}|lin_api_\w{20,}|wandb_v1_\w{16,}"
    r"|eyJ[\w-]{10,}\.[\w-]{5,}(?:\.[\w-]*)?"  # JSON web tokens
    r"|AGE-SECRET-KEY-1\w{20,}"
    r"|api_org_[A-Za-z0-9]{16,}|GR1348941[\w-]{16,}|(?:AC|SK)[0-9a-f]{32}(?![0-9a-z])|fm[12]_[\w+/=-]{16,}"
    r"|rpa_[A-Za-z0-9]{20,}|ATATT3[\w=-]{20,}|glc_[\w=]{20,}|sq0[a-z]{3}-[\w-]{20,}"
    r"|SHA256:[A-Za-z0-9+/]{43}(?![A-Za-z0-9+/])"  # the fingerprint of a person's key
    r")"
)
_BLOCK = re.compile(
    r"(?P<lead>-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----).{0,8000}?"
    r"(?P<tail>-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_SSH_KEY = re.compile(
    r"(?P<lead>\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-nistp\d+) )AAAA[A-Za-z0-9+/=]{20,}"
    r"(?: [^\s@]{1,64}@[^\s\"']{1,100})?"
)
_BOT = re.compile(r"(?P<lead>/bot)\d{8,10}:[\w-]{30,}")  # Telegram
_BASIC = re.compile(
    r"(?P<lead>(?<!\S)(?:-u|--user|--proxy-user)[ =][\"']?)"
    r"(?P<value>(?!\d+:\d+(?!\S))[^\s:\"'/]{1,80}:[^\s\"'/]{4,})"
)
_WANDB = re.compile(r"(?P<lead>\bwandb\b[^\n]{0,60}?[^\w/-])(?P<value>[0-9a-f]{40})(?![\w-])")
_HOOK = re.compile(
    r"(?P<lead>https://(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks"
    r"|[\w.-]{1,80}\.webhook\.office\.com/webhookb2)/)[\w/@.-]{8,}"
)
_IN_URL = re.compile(r"(?P<lead>\b[a-z][a-z0-9+.-]{1,20}://)[^/\s:@'\"<>]{0,200}(?::[^/\s@'\"<>]{0,400})?@")
_QUERY = re.compile(
    r"(?P<lead>[?&](?:X-Amz-[\w-]{1,40}|X-Goog-[\w-]{1,40}|Signature|sig|sv|se|token|access_token|key|api_key"
    r"|apikey|Policy|Key-Pair-Id|AWSAccessKeyId|GoogleAccessId|code|secret|password|auth)=)[^&\s\"'<>)]{3,}",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(?P<lead>\b(?:(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:(?:Bearer|Basic|Token|Digest)\s+)?"
    r"|Bearer\s+|(?:set-)?cookie[\"']?:\s*[\"']?|x-[\w-]{0,30}(?:token|key|auth)[\"']?:\s*[\"']?))"
    r"(?P<value>[^\s\"',]{6,}(?:; ?[^\s\"',=]{1,80}=[^\s\"',;]{1,400}){0,20})",
    re.IGNORECASE,
)
# PASSWORD=…, "api_key": "…", --secret …: whatever is given under such a name is one, if it is a value at all
_STRONG = (
    r"(?:pg)?passw(?:or)?d|passphrase|passwd|pwd|secret|credentials?|(?:api|access|private|secret|account|auth"
    r"|signing|client"
    r"|encryption|master|ssh|wandb|wandb_login|ngc|comet|neptune|mlflow|openai|hf|kaggle|storage)[_-]?keys?"
    r"|(?:auth|access|refresh|id|session|hf|hub|hugging_?face(?:_hub)?|github|gitlab|wandb|bearer|api"
    r"|bot|ci_job|login"
    r"|deploy|registry|pypi|npm)[_-]?tokens?|sas[_-]?token|connection_?string"
)
# token=… alone is as often a word of a text as one of a login
_WEAK = r"tokens?|auth|keys?|login|pin"
_QUOTE = r"(?P<quote>\\?[\"'])?"
_NAMED = re.compile(
    rf"(?P<lead>(?<![A-Za-z0-9])(?:[\w-]{{0,60}}?[_-])?(?:(?P<strong>{_STRONG})|(?:{_WEAK}))"
    rf"(?:_[\w]{{1,20}})?\\?[\"']?\]?"
    rf"\s*(?:=>?|:)\s*(?:[bfru]{{1,2}}(?=[\"']))?{_QUOTE})(?P<value>(?(quote)[^\"'\r\n\\]{{4,}}"
    rf"|[^\s\"',;&)}}\]]{{4,}}))",
    re.IGNORECASE,
)
_OPTION = re.compile(
    rf"(?P<lead>(?<!\S)--?(?:[\w-]{{0,40}}?[_-])?(?:(?P<strong>{_STRONG})|(?:{_WEAK}))[ =][\"']?)"
    rf"(?P<value>[^\s\"']{{4,}})",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?P<lead>\bwandb login (?:--\S+ )*)(?P<value>[A-Za-z0-9]{20,})")
_NETRC = re.compile(r"(?P<lead>\blogin \S{1,80}\s{1,10}password )(?P<value>\S{4,})")

_NO_VALUE = frozenset({
    "none", "null", "true", "false", "redacted", "missing", "required", "invalid", "str", "string",
    "int", "bool", "bytes", "optional", "unset", "empty", "error", "not", "undefined", "default", "set",
    "unknown", "hidden", "tensor", "list", "dict", "tuple", "float", "object", "self", "value", "your",
    "this", "that", "must", "should", "expected", "found", "got", "query", "keys", "values",
})  # fmt: skip
_CODE = re.compile(r"[()\[\]{}<>$]|^[\w.]*\*+$|^\.\.\.|^%|^:|^[A-Za-z_]\w*\.[A-Za-z_]")
_PLAIN_NUMBER = re.compile(r"[-+]?[\d.,_]+(?:e[-+]?\d+)?[%kKmMgGbB]?\.?$")


def take_out(text: str, count: Callable[[], str]) -> str:
    """The text without credentials. ``count`` is called for each one and gives what stands in its place."""

    def after_lead(found: re.Match[str]) -> str:
        return found["lead"] + count()

    def named(found: re.Match[str]) -> str:
        strong = found["strong"]
        number = strong is not None and "pass" in strong.lower() and _is_number_of_some_length(found["value"])
        return after_lead(found) if number or _is_secret(found["value"], strong is not None) else found[0]

    def form(found: re.Match[str]) -> str:
        return after_lead(found) if found["value"] != STAND_IN else found[0]

    if "PRIVATE KEY" in text:
        text = _BLOCK.sub(lambda found: found["lead"] + count() + found["tail"], text)
    if "://" in text:
        text = _HOOK.sub(after_lead, text)
        text = _IN_URL.sub(
            lambda found: found[0] if STAND_IN in found[0] else found["lead"] + count() + "@", text
        )
        text = _BOT.sub(after_lead, text)
        text = _QUERY.sub(lambda found: found[0] if STAND_IN in found[0] else after_lead(found), text)
    text = _SSH_KEY.sub(after_lead, text)
    text = _ISSUED.sub(lambda _: count(), text)
    text = _HEADER.sub(lambda found: form(found) if _is_secret(found["value"], True) else found[0], text)
    for pattern in (_NAMED, _OPTION):
        text = pattern.sub(named, text)
    text = _BASIC.sub(form, text)
    if "wandb" in text:
        text = _WANDB.sub(form, text)
    text = _LOGIN.sub(form, text)
    return _NETRC.sub(form, text)


def _is_number_of_some_length(value: str) -> bool:
    """A password may be a number; a short one under such a name is rather a count or a switch."""
    bare = value.strip("\"'")
    return bare.isdecimal() and len(bare) >= 6


def _is_secret(value: str, strong: bool) -> bool:
    """Whether a value given under such a name is one, and no number, setting, type or piece of code."""
    bare = value.strip().rstrip(".,:;)")
    if STAND_IN in value or bare.lower() in _NO_VALUE or _CODE.search(bare) or _PLAIN_NUMBER.match(bare):
        return False
    if " " in bare and not strong:
        return False
    if strong:
        return not bare.startswith(("/", "~")) and len(bare) >= 4
    letters = any(char.isalpha() for char in bare)
    return (
        len(bare) >= 8
        and letters
        and any(char.isdigit() for char in bare)
        and not re.match(r"[\w-]+[./]\w", bare)
    )
