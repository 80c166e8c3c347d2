"""Rules of other distributions: found by their metadata, never imported, and no danger to the catalog."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from printed import Printed

from torchdoctor import catalog
from torchdoctor.catalog import packs
from torchdoctor.cli.main import main

RULE = """id = "{id}"
family = "scheduler"
severity = "fatal"
role = "cause"
title = "{id} of our cluster"
why = "Because our cluster does so."
leads_to = ["@peer-death"]
[[match]]
text = "frobnicator of {id} has stopped"
"""
LOG = (
    'Traceback (most recent call last):\n  File "/home/me/a.py", line 1, in f\n    g()\n'
    "RuntimeError: frobnicator of our-cluster has stopped\n"
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(packs.OFF, raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    monkeypatch.chdir(tmp_path)
    return folder


def install(
    site: Path, value: str = "our_rules.data", rule_id: str = "our-cluster", name: str = "our-rules"
) -> Path:
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[torchdoctor.rules]\nours = {value}\n", encoding="utf-8")
    package = site / "our_rules"
    rules = package / "data" / "scheduler"
    rules.mkdir(parents=True, exist_ok=True)
    for module in (package / "__init__.py", package / "data" / "__init__.py"):
        module.write_text("raise SystemExit('the code of a pack was run')\n", encoding="utf-8")
    (rules / f"{rule_id}.toml").write_text(RULE.format(id=rule_id), encoding="utf-8")
    return package / "data"


def settled(site: Path) -> None:
    """Nothing was installed lately."""
    os.utime(site, (1_700_000_000, 1_700_000_000))


def test_a_pack_is_found_and_its_code_is_not_run(site: Path) -> None:
    folder = install(site)
    assert packs.installed() == ((("our-rules (ours = our_rules.data)", str(folder)),), ())
    assert "our_rules" not in sys.modules
    rules, problems = catalog.load_with_packs()
    assert problems == ()
    assert "nccl-timeout" in rules.rule("our-cluster").leads_to


def test_explain_uses_it(site: Path, tmp_path: Path, printed: Printed) -> None:
    install(site)
    (tmp_path / "run.log").write_text(LOG, encoding="utf-8")
    assert "our-cluster of our cluster" in printed(["explain", "--offline", "run.log"])


def test_show_finds_its_comments_and_list_names_it(site: Path, printed: Printed) -> None:
    folder = install(site)
    path = folder / "scheduler" / "our-cluster.toml"
    path.write_text(
        path.read_text("utf-8").replace("[[match]]", "# frobnicator 3\n[[match]]"), encoding="utf-8"
    )
    assert "our-cluster" in printed(["rules", "list", "--family", "scheduler"])
    assert "frobnicator 3" in printed(["rules", "show", "our-cluster"])


def test_the_switch_leaves_all_packs_out(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site)
    monkeypatch.setenv(packs.OFF, "1")
    assert packs.installed() == ((), ())


def test_the_answer_is_kept_until_something_is_installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "_SETTLED_S", 0.0)
    settled(site)
    assert packs.installed() == ((), ())
    looks: list[object] = []
    look = packs._look
    monkeypatch.setattr(packs, "_look", lambda folders: looks.append(1) or look(folders))
    assert packs.installed() == ((), ())
    assert looks == []
    install(site)
    assert [name for name, _ in packs.installed()[0]] == ["our-rules (ours = our_rules.data)"]
    assert looks == [1]


def test_nothing_is_kept_while_an_installer_may_be_at_work(site: Path, tmp_path: Path) -> None:
    packs.installed()
    assert not list((tmp_path / "cache").rglob("packs-*"))


def test_the_current_folder_brings_no_rules(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    install(logs)
    monkeypatch.setattr(sys, "path", [str(logs), *sys.path])
    assert packs.installed() == ((), ())


@pytest.mark.parametrize("value", ["no_such_package", "our_rules.nothing", "json"])
def test_a_pack_that_names_no_package_is_told(
    site: Path, value: str, tmp_path: Path, printed: Printed
) -> None:
    install(site, "json.decoder" if value == "json" else value)
    (tmp_path / "run.log").write_text(LOG, encoding="utf-8")
    assert "names no package that is installed" in printed.errors(["explain", "--offline", "run.log"])


def test_a_faulty_pack_is_told_and_left_out(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, rule_id="nccl-timeout")
    (tmp_path / "run.log").write_text(
        "RuntimeError: CUDA error: device-side assert triggered\n", encoding="utf-8"
    )
    assert main(["explain", "--offline", "--format", "json", "run.log"]) == 0
    captured = capsys.readouterr()
    assert "rule pack our-rules (ours = our_rules.data) is left out:" in captured.err
    assert 'id "nccl-timeout" is taken by the catalog' in captured.err
    assert "cuda-assert-other" in captured.out


def test_two_packs_cannot_share_an_id(site: Path) -> None:
    install(site)
    install(site, name="other-rules")
    rules, problems = catalog.load_with_packs()
    assert "our-cluster" in rules
    assert any("is taken by the catalog" in line for line in problems)
