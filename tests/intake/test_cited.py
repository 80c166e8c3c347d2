"""What a reply cites of somebody whom it names is his; what a person sets off with > himself is his own."""

from __future__ import annotations

import pytest

from torchdoctor.catalog import RuleSet, load
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text

ERROR = "RuntimeError: operator torchvision::nms does not exist"
OVER = "Yes, that was it, thank you! I took both from one index, and since then all jobs went through."


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return load()


@pytest.mark.parametrize(
    "text",
    [
        f"> On Monday Lena wrote:\n> > {ERROR}\n> Did you upgrade torch alone?\n{OVER}\n",
        f"On Mon, 3 Jun 2024, Lena <lena@example.org> wrote:\n> {ERROR}\n\n{OVER}\n",
        f"Am Montag schrieb Lena:\n> {ERROR}\n> Was war das?\n\nBei uns lief es seitdem ohne Fehler durch.\n",
    ],
)
def test_a_reply_that_looks_back(text: str, rules: RuleSet) -> None:
    assert not diagnose(read_text(text), FactBook(None), rules).diagnoses


@pytest.mark.parametrize(
    "text",
    [
        f"> On Monday Lena wrote:\n> Was torch upgraded alone?\n\nI did, and still get this:\n\n{ERROR}\n",
        f"Could you help me with this? On Monday Lena wrote:\n> {ERROR}\n\nShe needs it today, any idea?\n",
        f"Since the update of torch I get this, what can I do?\n\n> {ERROR}\n",
    ],
)
def test_somebody_who_has_it_now(text: str, rules: RuleSet) -> None:
    report = diagnose(read_text(text), FactBook(None), rules)
    assert [one.rule for one in report.diagnoses] == ["torchvision-mismatch"]
