"""Facts of a machine out of a JSON file: what is read, and what every mistake in it is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sample_reports

from torchdoctor.model import Reason, State
from torchdoctor.probes.recorded import FactsFileError, load_facts
from torchdoctor.render.json import to_json


def written(folder: Path, text: str) -> str:
    path = folder / "facts.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_names_and_values(tmp_path: Path) -> None:
    source = load_facts(
        written(
            tmp_path, '{"torch.version": "2.1", "gpu.count": 0, "gpu.names": ["A", "B"], "torch.hip": null}'
        )
    )
    assert sorted(source.names()) == ["gpu.count", "gpu.names", "torch.hip", "torch.version"]
    assert source.fetch("gpu.count").value == 0
    assert source.fetch("gpu.names").value == ("A", "B")
    assert source.fetch("torch.hip").state is State.ABSENT
    assert source.fetch("torch.version").source.endswith("facts.json")
    other = source.fetch("torch.cuda")
    assert (other.state, other.reason) == (State.UNKNOWN, Reason.NOT_ASKED)


def test_the_facts_of_a_report(tmp_path: Path) -> None:
    source = load_facts(written(tmp_path, to_json(sample_reports.DIAGNOSED)))
    assert source.fetch("torch.version") == sample_reports.DIAGNOSED.facts[0]
    assert source.fetch("driver.version").reason is Reason.NOT_PERMITTED
    assert source.fetch("torch.arch_list").value == ("sm_80", "sm_90")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{not json", "not JSON"),
        ("[1]", "must be an object"),
        ('{"facts": {}}', "facts must be a list"),
        ('{"facts": [1]}', r"facts\[1\] must be an object"),
        ('{"facts": [{"name": "a", "state": "sure"}]}', "states: known, absent, unknown"),
        ('{"facts": [{"name": "a", "state": "unknown"}]}', "needs a reason"),
        ('{"facts": [{"name": "a", "state": "unknown", "reason": "tired"}]}', "reasons: not-installed"),
        ('{"env.A": {"b": 1}}', "not an object"),
        ('{"torch.verison": "2.9.0"}', "unknown fact 'torch.verison'; did you mean 'torch.version'"),
        ('{"qqqq": 1}', "unknown fact 'qqqq'; `torchdoctor rules facts` lists them"),
        ('{"torch.version": 2.9}', "torch.version: 2.9 is no text: "),
        ('{"gpu.count": true}', "gpu.count: True is no int: "),
        ('{"facts": [{"name": "a", "value": 1}]}', "no fact of a machine in it; unknown fact 'a'"),
        ("[" * 100_000, "not JSON|must be an object"),
        ("", "not JSON"),
    ],
)
def test_mistakes(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(FactsFileError, match=complaint) as error:
        load_facts(written(tmp_path, text))
    assert "facts.json: " in str(error.value)


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    text = json.dumps({"facts": [{"state": "known"}, {"name": "a", "state": "sure"}]})
    with pytest.raises(FactsFileError) as error:
        load_facts(written(tmp_path, text))
    assert len(str(error.value).splitlines()) == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FactsFileError, match="cannot be read: No such file"):
        load_facts(str(tmp_path / "gone.json"))
