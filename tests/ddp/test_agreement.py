"""Predictions against what DistributedDataParallel really does, in two processes over gloo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

from tests.ddp.zoo import ZOO  # noqa: E402
from torchdoctor import ddp  # noqa: E402
from torchdoctor.ddp.child.examine import examine  # noqa: E402
from torchdoctor.ddp.observation import observation  # noqa: E402
from torchdoctor.ddp.predict import Kind, Raised, Setting, predict  # noqa: E402
from torchdoctor.ddp.wording import MESSAGES  # noqa: E402
from torchdoctor.model import Verdict  # noqa: E402

# as a program of the user's runs: torch warns of much, and here alone that would be an error
pytestmark = pytest.mark.filterwarnings("ignore")

REAL = Path(__file__).with_name("real.py")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("real")
    run = subprocess.run(
        [sys.executable, str(REAL), str(folder)], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    by_rank = []
    for rank in ("0", "1"):
        lines = [json.loads(line) for line in (folder / rank).read_text().splitlines()]
        by_rank.append({(line["name"], line["setting"]): line for line in lines})
    assert {key: value["message"] is None for key, value in by_rank[0].items()} == {
        key: value["message"] is None for key, value in by_rank[1].items()
    }
    return by_rank[0]


def predicted(name: str) -> dict[Setting, Raised | None]:
    torch.manual_seed(0)
    return predict(observation(json.loads(json.dumps(examine(*ZOO[name]())))))


def test_the_zoo_is_large_and_holds_both_kinds(real: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert len(ZOO) >= 50
    assert len(real) == len(ZOO) * len(Setting)
    raising = sum(one["message"] is not None for one in real.values())
    assert raising >= 60
    assert len(real) - raising >= 60


@pytest.mark.parametrize("name", ZOO)
def test_prediction_agrees(name: str, real: dict[tuple[str, str], dict[str, Any]]) -> None:
    for setting, guess in predicted(name).items():
        truth = real[name, setting.value]
        assert (guess is not None) == (truth["message"] is not None), f"{setting.value}: {truth} {guess}"
        if guess is None:
            continue
        assert (guess.iteration, guess.stage) == (truth["iteration"], truth["stage"]), setting.value
        assert any(part in truth["message"] for part in MESSAGES[guess.kind].split(" / ")), truth["message"]
        assert set(truth["names"]) <= set(guess.parameters), setting.value
        if guess.kind is Kind.UNUSED:
            assert set(truth["names"]) == set(guess.parameters), setting.value


@pytest.mark.parametrize("name", ZOO)
def test_report_agrees(name: str, real: dict[tuple[str, str], dict[str, Any]]) -> None:
    """A failure with DDP's default settings is a problem with its parameters named; nothing else is one."""
    torch.manual_seed(0)
    report = ddp.check(*ZOO[name]())
    truth = real[name, Setting.PLAIN.value]
    problems = [one for one in report.checks if one.verdict is Verdict.FAIL]
    assert bool(problems) == (truth["message"] is not None), problems
    if problems:
        text = "\n".join(item.text for item in problems[0].evidence)
        assert all(parameter in text for parameter in truth["names"])
