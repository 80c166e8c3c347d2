"""``--fix`` and ``--diff``: what is changed, and that all else stays byte for byte."""

from __future__ import annotations

import codecs
import os
import subprocess
from pathlib import Path

import pytest
from printed import Printed

from torchdoctor.cli.main import main

LOOP = (
    "import torch\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
    "for x in loader:\n    net(x).sum().backward()\n    opt.step()\n"
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "a.py"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("indent", ["    ", "\t", "  "])
def test_ends_of_lines_and_indents_stay(end: str, indent: str, file: Path) -> None:
    text = LOOP.replace("    ", indent).replace("\n", end)
    file.write_bytes(text.encode())
    assert main(["lint", "--fix", "a.py"]) == 0
    changed = file.read_bytes().decode()
    assert changed.replace(f"\n{indent}opt.zero_grad()", "") == text


@pytest.mark.parametrize(
    ("encoding", "head"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("latin-1", "# -*- coding: latin-1 -*-\n"),
        ("utf-8", "\x0c# ü\u2028\n"),
    ],
)
def test_the_encoding_stays(encoding: str, head: str, file: Path) -> None:
    text = head + LOOP.replace("net(x)", "net(x, 'é')")
    file.write_bytes(text.encode(encoding))
    assert main(["lint", "--fix", "a.py"]) == 0
    raw = file.read_bytes()
    assert raw.startswith(codecs.BOM_UTF8) == (encoding == "utf-8-sig")
    assert raw.decode(encoding).replace("\n    opt.zero_grad()", "") == text


def test_diff_writes_nothing_and_applies(
    file: Path, printed: Printed, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(LOOP)
    diff = printed(["lint", "--diff", "a.py"], 1)
    assert "+    opt.zero_grad()" in diff
    assert file.read_text() == LOOP
    done = subprocess.run(["patch", "-p0"], input=diff, text=True, capture_output=True, check=False)
    if done.returncode == 0:
        assert main(["lint", "a.py"]) == 0
    file.write_text(LOOP.replace("    opt.step()", "    opt.step()\n    opt.zero_grad()"))
    capsys.readouterr()
    assert printed(["lint", "--diff", "a.py"]) == ""


def test_what_remains_decides(file: Path, printed: Printed) -> None:
    file.write_text(LOOP.replace(".backward()", ".backward(retain_graph=True)"))
    text = printed(["lint", "--fix", "a.py"], 1)
    assert "1 file repaired" in text
    assert "[backward-retain-always]" in text
    assert "[zero-grad-missing]" not in text


def test_mode_and_link_stay(file: Path) -> None:
    real = file.with_name("real.py")
    real.write_text(LOOP)
    real.chmod(0o750)
    file.symlink_to(real)
    assert main(["lint", "--fix", "a.py"]) == 0
    assert file.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o750
    assert "zero_grad" in real.read_text()
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".")] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(LOOP)
    file.parent.chmod(0o500)
    try:
        assert main(["lint", "--fix", "a.py"]) == 2
    finally:
        file.parent.chmod(0o700)
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m = torch.nn.Linear(1, 1)\ny = m.forward(m.forward(x))\n", "y = m(m(x))"),
        ("m = torch.nn.Linear(1, 1)\ny = (m).forward(x)\n", "y = (m).forward(x)"),
        ("m = torch.nn.Linear(1, 1)\ny = m. forward (x)\n", "y = m. forward (x)"),
    ],
)
def test_forward(before: str, after: str, file: Path) -> None:
    file.write_text(f"import torch\n{before}")
    main(["lint", "--fix", "a.py"])
    assert file.read_text().splitlines()[-1] == after


@pytest.mark.parametrize(
    ("use", "added"), [("print(total)", "loss.item()"), ("print(total.cpu())", "loss.detach()")]
)
def test_a_total_that_is_used_as_a_tensor_stays_one(use: str, added: str, file: Path) -> None:
    file.write_text(
        "import torch\ntotal = 0\nfor x in loader:\n    opt.zero_grad()\n    loss = net(x)\n"
        f"    loss.backward()\n    opt.step()\n    total += loss\n{use}\n"
    )
    assert main(["lint", "--fix", "a.py"]) == 0
    assert f"total += {added}" in file.read_text()


def test_a_checkpoint_that_goes_elsewhere_is_left_alone(file: Path) -> None:
    text = (
        'import torch\ntorch.distributed.init_process_group("nccl")\nw = torch.load("x.pt")\nprint(w.sum())\n'
    )
    file.write_text(text)
    assert main(["lint", "--fix", "a.py"]) == 1
    assert file.read_text() == text
