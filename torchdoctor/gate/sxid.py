"""How grave an SXid of an NVSwitch is.

Classes after the tables of gpud (sxid.go) and NVIDIA's fabric manager guide; the actions are ours.
"""

from __future__ import annotations

from enum import Enum

_CORRECTED = frozenset(
    (
        11012, 11021, 11022, 11023, 12021, 12023, 15008, 15011, 19049, 19055, 19057, 19059, 19062, 19065,
        19068, 19071, 24001, 24002, 24003, 20001, 20009, 20012, 22013,
    )
)  # fmt: skip
_ACCESS = frozenset((11004, 12028, 19084))
_POTENTIAL = frozenset(
    (
        11001, 11009, 11013, 11018, 11019, 11020, 12001, 12002, 12022, 12024, 12025, 12026, 12027, 12030,
        12031, 12032, 14017, 15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054, 19056, 19058,
        19060, 19061, 19063, 19064, 19066, 19067, 19069, 19070, 20034, 24004, 24005, 24006, 24007,
    )
)  # fmt: skip
_FATAL = frozenset((12020, 22003, 22011, *range(23001, 23018)))
_HOST = frozenset((10001, 10002, 10004, 10005))
LINK_FAULT = 20034  # LTSSM fault up: also printed when a GPU is reset or its driver unloaded


class Gravity(str, Enum):
    CORRECTED = "corrected"
    ACCESS = "access"
    RESET = "reset"
    REBOOT = "reboot"
    WATCH = "watch"


def gravity(code: int, severity: str) -> Gravity:
    """By its number; an unlisted one by the line's own word. A line that says Non-fatal never gates."""
    if code in _CORRECTED:
        return Gravity.CORRECTED
    if code in _ACCESS:
        return Gravity.ACCESS
    if code in _FATAL or code == 10003:
        return Gravity.REBOOT
    if severity == "nonfatal" or code in _HOST:
        return Gravity.WATCH
    if code in _POTENTIAL or severity == "fatal":
        return Gravity.RESET
    return Gravity.WATCH
