"""Addresses of machines, and numbers that only one machine, card or account has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    # kind, what stood there, form of the stand-in with {} for its number -> the stand-in
    Namer = Callable[[str, str, str], str]

# four numbers alone are as likely a version (nvidia-cublas 12.4.5.8): an address has a sign of one beside it
_IPV4 = re.compile(
    r"(?P<lead>://|\[|^[ \t]*|(?:\b(?:addr\w*|host|ip|from|to|peer|remote|connect\w*|inet|endpoint"
    r"|listen\w*|bind\w*|at|on|ping|ssh|scp|rsync|dial|tcp|udp|telnet|route|gateway"
    r"|address|server|client|node|via)\b[\s:=('\"\[]{1,4}"
    r"|\b(?:ssh|scp|sftp|rsync) (?:-\S{1,20} ){0,4}[\w.-]{1,32}@))?"
    r"(?P<address>(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]|-\d))(?P<port>[:<]\d{1,5}\b)?"
    r"(?P<after>:\s| (?:is )?(?:unreachable|refused|timed out|closed|down|port \d))?",
    re.IGNORECASE | re.MULTILINE,
)
_IPV6 = re.compile(
    r"(?<![\w:])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?=[0-9a-fA-F:]{0,4}\d|[fF][cdeE][0-9a-fA-F]{2}:)(?:[0-9a-fA-F]{1,4}:){1,6}"
    r"(?::[0-9a-fA-F]{1,4}){1,6})(?![\w:])"
)
_MAC = re.compile(
    r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b|(?<![\w-])(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}(?![\w-])"
)
# 3cec.ef1a.2b3c as switches write it; figures alone are rather a version
_MAC_OF_SWITCH = re.compile(
    r"(?<![\w.-])(?=[\d.]{0,13}[a-fA-F])[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}(?![\w.-])"
)
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_SERIAL = re.compile(
    r"(?P<lead>\b(?:(?:gpu|board|chassis|module|product|drive|device|system)?[ _-]?(?:serial(?:[ _-]?"
    r"(?:number|no\.?|num))?|s/n|(?:asset|service) tag"
    r"|(?:node|system|port|sys[ _]image)[ _-]?guid|guid))[\"']?\s*[:=]\s*[\"']?)(?P<value>"
    r"(?=[\w:-]{0,30}\d)[\w:-]{6,40})",
    re.IGNORECASE,
)
_MACHINE_ID = re.compile(
    r"(?P<lead>\b_?(?:machine|boot|host|system|product)[ _-]?(?:id|uuid)[\"']?\s{0,8}[:=]\s{0,40}[\"']?)"
    r"(?P<value>[0-9a-f]{32}|[0-9a-f]{8})(?![\w-])",
    re.IGNORECASE,
)
_CONTAINER = re.compile(
    r"(?P<lead>\b(?:containerd|docker|cri-o|cri-containerd|crio)(?:://|[/-])"
    r"|\bcontainer(?: id)?:? {1,4}[\"']?)"
    r"(?P<value>[0-9a-f]{64}|[0-9a-f]{12})(?![\w-])",
    re.IGNORECASE,
)
_ACCOUNT = re.compile(
    r"(?P<lead>\barn:aws[\w-]*:[\w-]*:[\w-]*:)(?P<value>\d{12})|(?P<instance>\bi-[0-9a-f]{17}\b)"
)
_KERBEROS_CACHE = re.compile(r"(?P<lead>\bkrb5cc_)(?P<value>[1-9]\d{2,9}(?:_\w{1,20})?)")

_PUBLIC = re.compile(r"(?:127|0|255|169\.254)\.|192\.0\.2\.|198\.51\.100\.|203\.0\.113\.|8\.8\.")
_PRIVATE = re.compile(
    r"10\.\d+\.\d+\.\d+$|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\."
)
_HIGHEST_MAJOR = 32  # no package that torch brings has a first version number as high as this


def take_out(text: str, name: Namer, secret: str) -> str:
    """The text with stand-ins for addresses, serials and ids; ``secret`` is that of secrets."""
    text = _MAC.sub(lambda found: name("addresses", found[0], "02:00:00:00:00:{:02x}"), text)
    text = _MAC_OF_SWITCH.sub(
        lambda found: (
            found[0] if found[0].startswith("0200.00") else name("addresses", found[0], "0200.00ff.{:04x}")
        ),
        text,
    )
    text = _IPV6.sub(lambda found: _address6(found, name), text)
    text = _IPV4.sub(lambda found: _address(found, name), text)
    text = _MACHINE_ID.sub(lambda found: _numbered(found, name), text)
    text = _CONTAINER.sub(lambda found: _numbered(found, name), text)
    text = _UUID.sub(lambda found: name("ids", found[0], "00000000-0000-0000-0000-{:012d}"), text)
    text = _SERIAL.sub(lambda found: _serial(found, name, secret), text)
    return _ACCOUNT.sub(lambda found: _account(found, name), text)


def without_caches(text: str, name: Namer) -> str:
    """The text without the numbers of users in names of Kerberos caches."""
    return _KERBEROS_CACHE.sub(lambda found: found["lead"] + name("ids", found["value"], "{}"), text)


def _numbered(found: re.Match[str], name: Namer) -> str:
    value = found["value"]
    if value.startswith("000000"):
        return found[0]
    return found["lead"] + name("ids", value, f"{{:0{len(value)}x}}")


def _serial(found: re.Match[str], name: Namer, secret: str) -> str:
    if found["value"].startswith(("SERIAL", "00000000-0000")) or found["value"] == secret:
        return found[0]
    return found["lead"] + name("serials", found["value"], "SERIAL{}")


def _account(found: re.Match[str], name: Namer) -> str:
    if found["instance"]:
        known = found[0].startswith("i-0000000000")
        return found[0] if known else name("ids", found["instance"], "i-{:017x}")
    return found["lead"] + name("ids", found["value"], "{:012d}")


def _address6(found: re.Match[str], name: Namer) -> str:
    address = found[0]
    if address.startswith("2001:db8:") or re.fullmatch(r"\d\d?(?::\d\d?)+", address):
        return address
    return name("addresses", address, "2001:db8::{}")


def _address(found: re.Match[str], name: Namer) -> str:
    address = found["address"]
    parts = [int(part) for part in address.split(".")]
    lead = found["lead"]
    is_one = (
        (lead and not lead.isspace())
        or found["port"]
        or (found["after"] and not found["after"].startswith(":"))
        or (lead is not None and found["after"])  # a node's address before each of its lines
        or parts[0] >= _HIGHEST_MAJOR
        or _PRIVATE.match(address)
    )
    if not is_one or _PUBLIC.match(address) or max(parts) > 255:
        return found[0]
    before = found[0][: found.start("address") - found.start()]
    return before + name("addresses", address, "192.0.2.{}") + (found["port"] or "") + (found["after"] or "")
