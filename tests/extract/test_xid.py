"""Xid and SXid lines, in the forms the driver has printed them."""

from __future__ import annotations

import pytest
from extracted import facts

from torchdoctor.extract import of_event
from torchdoctor.model import Event, EventKind, Fact, FactValue, State, Transcript


def extract(text: str) -> dict[str, Fact]:
    return facts("xid", Event(0, EventKind.KERNEL_LOG, text, "dmesg.txt", 3, 3))


def known(text: str) -> dict[str, FactValue]:
    return {name: fact.value for name, fact in extract(text).items() if fact.state is State.KNOWN}


@pytest.mark.parametrize(
    ("text", "code", "pci", "pid"),
    [
        (
            "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            79,
            "0000:41:00",
            None,
        ),
        (
            "[1.5] NVRM: Xid (PCI:0000:9b:00): 94, pid=1234567, name=python3, Contained ECC error",
            94,
            "0000:9b:00",
            1234567,
        ),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00", None),
        (
            "NVRM: Xid (PCI:0019:01:00.0): 31, pid=960, name=python3, channel 0x0000000a, intr 00000000.",
            31,
            "0019:01:00.0",
            960,
        ),
        (
            "kernel: NVRM: Xid (PCI:0000:05:00): 48, An uncorrectable double bit error (DBE)",
            48,
            "0000:05:00",
            None,
        ),
        ("NVRM: Xid (PCI:0000:07:00): 43, pid=426, name=python3, channel 0x0000000a", 43, "0000:07:00", 426),
        ("NVRM: Xid (PCI:0000:07:00): 109", 109, "0000:07:00", None),
    ],
)
def test_forms(text: str, code: int, pci: str, pid: int | None) -> None:
    found = extract(text)
    assert (found["code"].value, found["pci"].value) == (code, pci)
    assert found["pid"].value == pid
    assert found["pid"].state is (State.KNOWN if pid is not None else State.ABSENT)


def test_the_process_name_is_not_searched_for_numbers() -> None:
    found = known("NVRM: Xid (PCI:0000:41:00): 43, pid=7, name=Xid (PCI:0000:41:00): 79, Ch 00000008")
    assert found["code"] == 43
    assert found["process"] == "Xid (PCI:0000:41:00): 79"


def test_nvlink5_subcode() -> None:
    found = known(
        "NVRM: Xid (PCI:0000:dc:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 "
        "0x00000002 0x0 0x0)"
    )
    assert (found["severity"], found["link"]) == ("fatal", 8)


def test_nvlink5_nonfatal() -> None:
    found = known(
        "NVRM: Xid (PCI:0000:ba:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)"
    )
    assert (found["severity"], found["link"]) == ("nonfatal", 13)


def test_nvlink5_without_its_words_has_no_severity() -> None:
    assert extract("NVRM: Xid (PCI:0000:ba:00): 145, something else")["severity"].state is State.ABSENT


def test_consequence_names_its_reason() -> None:
    found = known(
        "NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid 149"
    )
    assert found["caused_by"] == 149


@pytest.mark.parametrize(
    ("state", "action"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "reset"),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", "reboot"),
        ("GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", "drain-p2p"),
        ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "drain-and-reset"),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "none"),
    ],
)
def test_recovery_action_is_the_new_state(state: str, action: str) -> None:
    found = known(f"NVRM: Xid (PCI:0000:4f:00): 154, pid='<unknown>', name=<unknown>, {state}")
    assert found["recovery"] == action


def test_sxid() -> None:
    found = known(
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"
    )
    assert (found["sxid"], found["severity"], found["link"]) == (12028, "nonfatal", 32)
    assert "code" not in found


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: GPU at 0000:03:00.0 has fallen off the bus.",
        "NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.",
        "NVRM: The NVIDIA GPU 0000:c1:00.0\nNVRM: (PCI ID: 10de:20b5) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
    ],
)
def test_off_the_bus_without_a_number(text: str) -> None:
    assert known(text)["code"] == 79


@pytest.mark.parametrize(
    "text",
    [
        "dhclient[811]: XMT: Solicit on eth0, xid 79",
        "dhclient[811]: DHCPREQUEST of 10.0.0.4 on eth0 to 255.255.255.255 port 67 (xid=0x4f)",
        "postgres: LOG: transaction ID wrap limit is 2147484379, xid 79",
        "the picture has fallen off the bus",
    ],
)
def test_other_lines_give_nothing(text: str) -> None:
    assert extract(text) == {}


@pytest.mark.parametrize(
    "told", ["No devices were found", "Unable to determine the device handle for GPU0: Unknown Error"]
)
def test_the_first_xid_beside_a_card_that_nvidia_smi_cannot_reach(told: str) -> None:
    kernel = "NVRM: Xid (PCI:0000:41:00): {code}, pid=1, name=python, Timeout after 6s"
    lines = (told, kernel.format(code=119), kernel.format(code=45))
    events = tuple(Event(n, EventKind.LOG, line, "a.log", n + 1, n + 1) for n, line in enumerate(lines))
    (fact,) = of_event("xid", events[0], Transcript(("a.log",), events))
    assert (fact.name, fact.value) == ("xid.first", 119)
    assert extract(told)["first"].state is State.ABSENT
