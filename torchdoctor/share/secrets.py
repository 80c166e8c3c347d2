"""Credentials: what the tokens of each issuer look like, and what stands before those that have no form."""

from __future__ import annotations

import re
from collections.abc import Callable

from torchdoctor.share import issuer_rules

STAND_IN = "REDACTED"

# Tokens that are known by their own form, whatever stands before them: those of this field, and those of
# which the table of issuer_rules knows one length only.
_ISSUED = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}"
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct|rtr|wt)-[\w-]{16,}(?:\.[\w-]{2,20}){0,2}"  # GitLab
    r"|GR1348941[\w-]{16,}"
    r"|sk-(?:ant-|proj-|or-)?[\w-]{16,}|sess-[A-Za-z0-9]{30,}|nvapi-[\w-]{16,}|r8_\w{20,}|gsk_\w{20,}"
    r"|xai-\w{20,}|pplx-\w{20,}|pcsk_\w{20,}|csk-[a-z0-9]{20,}|tgp_v1_[\w-]{20,}|fw_[A-Za-z0-9]{20,}"
    r"|lsv2_[a-z]{2}_\w{20,}|[sp]k-lf-[\w-]{20,}|jina_[\w-]{20,}|sk_[a-f0-9]{40,}|voyage-\w{24,}|pa-[\w-]{40,}"
    r"|wandb_v1_[\w-]{16,}|rpa_[A-Za-z0-9]{20,}|a[ks]-[A-Za-z0-9]{22}(?![\w-])|esecret_\w{20,}|aph0_[\w-]{20,}"
    r"|xox[abceoprsd][.-][\w.+/%=-]{10,}|xapp-[\w-]{10,}"  # Slack
    r"|A(?:KI|SI|BI|CC)A[A-Z0-9]{12,}|ABSK[A-Za-z0-9+/=]{40,}|bedrock-api-key-[\w+/=-]{20,}"  # AWS
    r"|AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}|1//0[\w-]{30,}|GOOG[\w]{20,58}(?![\w])"  # Google
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|do[opr]_v1_[a-f0-9]{40,}|dckr_[po]at_[\w-]{20,}"
    r"|dapi[a-f0-9]{32}(?:-\d)?|dose[a-f0-9]{32}"  # Databricks
    r"|\d{8,10}:AA[\w-]{30,}"  # Telegram
    r"|[MNO][A-Za-z\d]{23,27}\.[\w-]{6}\.[\w-]{27,}"  # Discord
    r"|S[GK]\.[\w-]{16,}\.[\w-]{16,}|SG\.[\w-]{20,}|[sr]k_(?:live|test)_\w{16,}|whsec_[\w+/=]{20,}"
    r"|(?:pub)?key-[a-f0-9]{32}(?![a-z0-9])"  # Mailgun
    r"|hv[sbr]\.[\w-]{20,}|lin_api_\w{20,}"  # Vault, Linear
    r"|eyJ[\w-]{10,}\.[\w-]{5,}(?:\.[\w-]*)?|eyJ[\w+/-]{40,}={0,2}"  # JSON web tokens, JSON in base64
    r"|AGE-SECRET-KEY-1\w{20,}|(?:AC|SK)[0-9a-f]{32}(?![0-9a-z])|fm[12]_[\w+/=-]{16,}"
    r"|ATATT3[\w=-]{20,}|gl(?:c|sa)_[\w=]{20,}|sq0[a-z]{3}-[\w-]{20,}"
    r"|SHA256:[A-Za-z0-9+/]{43}(?![A-Za-z0-9+/])"  # the fingerprint of a person's key
    r")"
)
# a word drawn at random, whoever issued it; a mangled name of C++ is passed over whole
_RANDOM = re.compile(r"(?<!\w)_{1,2}Z\w{4,4000}|(?<![A-Za-z0-9])(?P<word>[A-Za-z0-9]{20,400})(?![A-Za-z0-9])")
_LONG = 28
_CLASS_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")

_KEY_MARK = re.compile(r"-----(?P<mark>BEGIN|END) [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_LONGEST_KEY = 16_000
# what a key without an end is made of: lines of base64 and the headers of old keys
_KEY_BODY = re.compile(
    r"(?:(?:\s|\\[nrt]|[\"',>|]){0,20}"
    r"(?:[A-Za-z0-9+/=]{16,}|(?:Proc-Type|DEK-Info|Comment|Version): ?[^\n\\]{1,80}))*"
)
_SSH_KEY = re.compile(
    r"(?P<lead>\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-nistp\d+) )AAAA[A-Za-z0-9+/=]{20,}"
    r"(?: [^\s@]{1,64}@[^\s\"']{1,100})?"
)
_BOT = re.compile(r"(?P<lead>/bot)\d{8,10}:[\w-]{30,}")  # Telegram
_HOOK = re.compile(
    r"(?P<lead>https://(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks"
    r"|[\w.-]{1,80}\.webhook\.office\.com/webhookb2)/)[\w/@.-]{8,}"
)
_IN_URL = re.compile(r"(?P<lead>\b[a-z][a-z0-9+.-]{1,20}://)[^/\s:@'\"<>]{0,200}(?::[^/\s@'\"<>]{0,400})?@")
_PROXY = re.compile(
    r"(?P<lead>(?:https?|all|ftp|socks)_?proxy[\"']?\s{0,3}[=:]\s{0,3}[\"']?)[^\s/:@\"']{1,80}:[^\s/@\"']{1,200}@",
    re.IGNORECASE,
)
_QUERY = re.compile(
    r"(?P<lead>[?&](?:X-Amz-[\w-]{1,40}|X-Goog-[\w-]{1,40}|Signature|sig|sv|se|token|access_token|key|api_key"
    r"|apikey|Policy|Key-Pair-Id|AWSAccessKeyId|GoogleAccessId|code|secret|password|auth)=)[^&\s\"'<>)]{3,}",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(?P<lead>\b(?:(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:(?:Bearer|Basic|Token|Digest)\s+)?"
    r"|Bearer\s+|x-[\w-]{0,30}(?:token|key|auth)[\"']?:\s*[\"']?))(?P<value>[^\s\"',]{6,})",
    re.IGNORECASE,
)
# all of them: the second may be the session
_COOKIE = re.compile(
    r"(?P<lead>\b(?:set-)?cookie[\"']?\s{0,3}[:=]\s{0,3}[\"']?)"
    r"(?P<value>[^\s\"'=;,]{1,80}=[^\"'\r\n]{4,4000})",
    re.IGNORECASE,
)
# PASSWORD=…, "api_key": "…", --secret …: whatever is given under such a name is one, if it is a value at all
_STRONG = (
    r"(?:pg)?passw(?:or)?d|passphrase|passwd|pwd|secret|credentials?|(?:shared[_-]?|secret[_-]?)?(?:api|access"
    r"|private|secret|account|auth|signing|client|encryption|master|ssh|wandb|wandb_login|ngc|comet|neptune"
    r"|mlflow|openai|hf|kaggle|storage)[_-]?keys?(?:[_-]data)?"
    r"|(?:auth|access|refresh|id|session|hf|hub|hugging_?face(?:_hub)?|github|gitlab|wandb|bearer|api"
    r"|bot|ci_job|login"
    r"|deploy|registry|pypi|npm)[_-]?tokens?|sas[_-]?token|connection_?string"
)
# token=… alone is as often a word of a text as one of a login
_WEAK = r"tokens?|auth|keys?|login|pin|jwt"
_QUOTE = r"(?P<quote>\\?[\"'])?"
# up to the same quote again; without one up to a space, or to what ends an argument or a pair: a password may
# hold brackets and commas
_VALUE = (
    r"(?P<value>(?(quote)(?:(?!(?P=quote))[^\r\n]){4,400}"
    r"|(?:[^\s\"',;&)}\]]|[,;&)}\]](?=[A-Za-z0-9$(<>/{!#%*^@])(?![\w-]{1,40}[=:])|[\"'](?=[A-Za-z0-9$])){4,400}))"
)
_NAMED = re.compile(
    rf"(?P<lead>(?:(?<![\w-])|(?<=\\[nrt]))(?:[\w-]{{0,60}}?[_-])?(?P<name>(?P<strong>{_STRONG})|(?:{_WEAK}))"
    rf"(?:_[\w]{{1,20}})?\\?[\"']?\]?"
    rf"\s*(?:=>?|:)\s*(?:[bfru]{{1,2}}(?=[\"']))?{_QUOTE}){_VALUE}",
    re.IGNORECASE,
)
_OPTION = re.compile(
    rf"(?P<lead>(?<!\S)--?(?:[\w.-]{{0,40}}?[._-])?"
    rf"(?P<name>(?P<strong>{_STRONG})|(?:{_WEAK}))[ =]{_QUOTE}){_VALUE}",
    re.IGNORECASE,
)
# DB_PASS=… is a variable of the environment; forward_pass=… is none
_VARIABLE = re.compile(
    rf"(?P<lead>\b(?P<name>(?P<strong>[A-Z][A-Z0-9_]{{1,40}}_(?:PASS|PW|PSW)))[\"']?\s?[=:]\s?{_QUOTE}){_VALUE}"
)
_BOOTSTRAP = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")  # kubeadm's
_ARGUMENT = r"(?:(?P<quote>[\"'])(?P<quoted>(?:(?!(?P=quote))[^\r\n]){1,200})|(?P<value>[^\s\"']{3,}))"
# passwords among the arguments of a command, under a letter that says nothing by itself
_COMMANDS = tuple(
    re.compile(rf"(?P<lead>{lead}){_ARGUMENT}")
    for lead in (
        r"\bmysql[a-z]{0,8}\b[^\n|;&]{0,200}?\s-p",
        r"\bsshpass\s(?:-\w\s?){0,2}?-p\s?",
        r"\b(?:docker|podman|nerdctl|buildah|helm registry|oras|crane|skopeo)\slogin\b"
        r"[^\n|;]{0,200}?\s-p[ =]?",
        r"\bredis-cli\b[^\n|;&]{0,200}?\s-a\s",
        r"\s-pass(?:in|out)?\s(?:pass:)",
        r"\b(?:smbclient|rpcclient)\b[^\n|;&]{0,200}?\s-U\s?[\w.\\-]{1,60}%",
        r"(?<!\S)(?:-u|--user|--proxy-user)[ =]"
        r"(?=[\"']?[^\s:\"'/]{1,80}:)(?![\"']?\d{1,10}:\d{1,10}(?:\s|$))",
    )
)
_WANDB = re.compile(r"(?P<lead>\bwandb\b[^\n]{0,60}?[^\w/-])(?P<value>[0-9a-f]{40})(?![\w-])")
_LOGIN = re.compile(r"(?P<lead>\bwandb login (?:--\S+ )*)(?P<value>[A-Za-z0-9]{20,})")
_NETRC = re.compile(r"(?P<lead>\blogin \S{1,80}\s{1,10}password )(?P<value>\S{4,})")
# host:port:database:user:password of .pgpass
_PGPASS = re.compile(
    r"(?P<lead>^[\w.*-]{1,100}:(?:\d{2,5}|\*):(?=[\w-]{0,60}[A-Za-z*])[\w*-]{1,60}:)"
    r"(?P<value>(?![\d.]+:)[^\s:]{1,60}:[^\s:]{4,100})$",
    re.MULTILINE,
)

_NO_VALUE = frozenset({
    "none", "null", "true", "false", "redacted", "missing", "required", "invalid", "str", "string",
    "int", "bool", "bytes", "optional", "unset", "empty", "error", "not", "undefined", "default", "set",
    "unknown", "hidden", "tensor", "list", "dict", "tuple", "float", "object", "self", "value", "your",
    "this", "that", "must", "should", "expected", "found", "got", "query", "keys", "values",
})  # fmt: skip
# a variable, a call, an index, an attribute, something to be filled in: no value that was given
_PLACEHOLDER = re.compile(
    r"\$\{?[A-Za-z_]\w*\}?$|\$[({][A-Za-z_{]|%\(?\w*\)?[a-zA-Z%]$|<[\w .:-]*>?$|\{[\w .!:{}-]*\}*$"
    r"|\[[\w .-]*\]?$|\([\w .,-]*\)?$|[\w.]*\*+$|\.\.\.|x{4,}$"
)
_WORDY = r"[A-Za-z_]+(?:\d{1,3}[a-z_]{0,20})?"  # conv2d, not EZ4jP9
_CODE = re.compile(
    rf"{_WORDY}(?:\.{_WORDY}){{0,8}}[(\[][\w.,:=*\"'()\[\] -]*$|{_WORDY}(?:\.{_WORDY}){{1,8}}$|:"
)
_PIECE = re.compile(r"[()\[\]{}<>$]|=(?!=*$)")  # of an expression, where nothing says that it is a secret
_PATH = re.compile(r"[/~][\w./~@%+: -]*$")
_PLAIN_NUMBER = re.compile(r"[-+]?[\d.,_]+(?:e[-+]?\d+)?[%kKmMgGbB]?\.?$")


def take_out(text: str, count: Callable[[], str]) -> str:
    """The text without credentials. ``count`` is called for each one and gives what stands in its place."""

    def after_lead(found: re.Match[str]) -> str:
        return found["lead"] + count()

    def form(found: re.Match[str]) -> str:
        return found[0] if STAND_IN in found["value"] else after_lead(found)

    if "PRIVATE KEY" in text:
        text = _without_keys(text, count)
    if "://" in text:
        text = _HOOK.sub(after_lead, text)
        text = _IN_URL.sub(
            lambda found: found[0] if STAND_IN in found[0] else found["lead"] + count() + "@", text
        )
        text = _BOT.sub(after_lead, text)
    text = _PROXY.sub(lambda found: found[0] if STAND_IN in found[0] else found["lead"] + count() + "@", text)
    text = _QUERY.sub(lambda found: found[0] if STAND_IN in found[0] else after_lead(found), text)
    text = _SSH_KEY.sub(after_lead, text)
    text = _ISSUED.sub(lambda _: count(), text)
    text = issuer_rules.take_out(text, count, STAND_IN)
    text = _COOKIE.sub(form, text)
    text = _HEADER.sub(lambda found: form(found) if _is_secret(found, True) else found[0], text)
    for pattern in (_NAMED, _OPTION, _VARIABLE):
        text = pattern.sub(lambda found: after_lead(found) if _is_named(found) else found[0], text)
    for pattern in _COMMANDS:
        text = pattern.sub(lambda found: _argument(found, count), text)
    for pattern in (_WANDB, _LOGIN, _NETRC, _PGPASS):
        text = pattern.sub(form, text)
    return _RANDOM.sub(lambda found: count() if found["word"] and is_random(found[0]) else found[0], text)


def is_random(word: str) -> bool:
    """Whether the characters change between small, capital and digit as often as if they were drawn by lot.

    Names do so at each part only. 62 signs change at six places in ten, and have three groups of digits
    within 20 characters nearly always.
    """
    runs = _CLASS_RUN.findall(word)
    digits = [run for run in runs if run.isdigit()]
    letters = "".join(run for run in runs if not run.isdigit())
    return (
        len(runs) >= 0.4 * len(word)
        and len(digits) >= (3 if len(word) < _LONG else 2)
        and not letters.isupper()
        and not letters.islower()
    )


def _without_keys(text: str, count: Callable[[], str]) -> str:
    """Each private key up to its end, or as far as it goes on. One pass: headers alone cost nothing."""
    marks = list(_KEY_MARK.finditer(text))
    made: list[str] = []
    done = 0
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        if mark["mark"] == "END" or mark.start() < done:
            continue
        stop = None
        if (
            following is not None
            and following["mark"] == "END"
            and following.start() - mark.end() < _LONGEST_KEY
        ):
            stop = following.start()
        else:
            body = _KEY_BODY.match(text, mark.end())
            stop = body.end() if body else mark.end()
        if STAND_IN in text[mark.end() : stop] or stop == mark.end():
            continue
        made += [text[done : mark.end()], count()]
        done = stop
    return "".join([*made, text[done:]])


def _argument(found: re.Match[str], count: Callable[[], str]) -> str:
    value = found["quoted"] or found["value"]
    if STAND_IN in value or _PLACEHOLDER.match(value):
        return found[0]
    return found["lead"] + (found["quote"] or "") + count()


def _is_named(found: re.Match[str]) -> bool:
    name, value = found["name"].lower(), found["value"]
    if "pass" in name and _is_number_of_some_length(value):
        return True
    if name == "pwd" and value.startswith("/"):  # the folder, not a password
        return False
    if "token" in name and _BOOTSTRAP.fullmatch(value):
        return True
    return _is_secret(found, found["strong"] is not None)


def _is_number_of_some_length(value: str) -> bool:
    """A password may be a number; a short one under such a name is rather a count or a switch."""
    bare = value.strip("\"'")
    return bare.isdecimal() and len(bare) >= 6


def _is_secret(found: re.Match[str], strong: bool) -> bool:
    """Whether a value given under such a name is one, and no number, setting, type or piece of code."""
    value = found["value"]
    quoted = found.re.groupindex.get("quote") is not None and found["quote"] is not None
    bare = value.strip().rstrip(".,:;)")
    if (
        STAND_IN in value
        or bare.lower() in _NO_VALUE
        or _PLAIN_NUMBER.match(bare)
        or _PLACEHOLDER.match(bare)
    ):
        return False
    if not quoted and _CODE.match(bare):
        return False
    if strong:
        return not _PATH.match(bare) and len(bare) >= 4
    if not quoted and _PIECE.search(bare):
        return False
    if len(bare) < 8 or " " in bare or not any(map(str.isalpha, bare)) or not any(map(str.isdigit, bare)):
        return False
    return is_random(re.sub(r"[^A-Za-z0-9]", "", bare)) or not (
        re.match(r"[\w-]+[./]\w", bare) or (quoted and _CODE.match(bare))
    )
