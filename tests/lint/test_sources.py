"""Inputs that are no sources, or no good ones: each is one finding, or a skip that is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchdoctor.cli.main import main
from torchdoctor.lint import sources
from torchdoctor.lint.examine import examine
from torchdoctor.lint.registry import default_ids

ALL = default_ids(True)
LOOP = (
    "import torch\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
    "for x in loader:\n    net(x).sum().backward()\n    opt.step()\n"
)


def found(raw: bytes, path: str = "x.py") -> list[tuple[str, int]]:
    result = examine(sources.of(raw, path), ALL)
    assert result.faults == ()
    return [(one.check, one.line) for one in result.findings]


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"x = 1\ny = '\xff\xfe'\n", 2),
        (b"print 'hello'\n", 1),
        (b"try:\n    pass\nexcept Exception, e:\n    exec 'x'\n", 3),
        (b"x = 1\x00\n", 1),
        (b"# -*- coding: no-such-codec -*-\n", 1),
        ("x = '\N{GREEK SMALL LETTER ALPHA}'\n".encode("utf-16"), 1),
        (b"x = (" + b"(" * 5000 + b")" * 5000 + b")\n", 1),
        (b"def f(:\n", 1),
        (b"\tx = 1\n        y = 2\n", 1),
    ],
)
def test_no_python(raw: bytes, line: int) -> None:
    ((check, at),) = found(raw)
    assert check == "syntax-error"
    assert at in (1, line)


@pytest.mark.parametrize(
    "expression",
    [
        "-" * 3000 + "1",
        " + ".join(["x"] * 20000),
        "f(" * 80 + "1" + ")" * 80,
        "a" + ".b" * 5000,
        "a" + "[0]" * 3000,
    ],
)
def test_deep_nesting(expression: str) -> None:
    text = f"import torch\nx = {expression}\nloss = x\nloss.backward()\n"
    result = examine(sources.of(text.encode(), "x.py"), ALL)
    assert result.faults == ()
    assert len(result.findings) <= 1


def test_deep_blocks() -> None:
    text = "import torch\n" + "".join(f"{' ' * at}if x:\n" for at in range(90)) + " " * 90 + "pass\n"
    assert found(text.encode()) == []


def test_a_big_file_is_skipped_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "big.py"
    with path.open("wb") as file:
        file.truncate(50 << 20)
    assert main(["lint", str(tmp_path)]) == 0
    assert "skipped, more than 2 MiB" in " ".join(capsys.readouterr().out.split())


def test_links_that_lead_nowhere_or_in_a_circle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "a.py").symlink_to(tmp_path / "b.py")
    (tmp_path / "b.py").symlink_to(tmp_path / "a.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "no.py")
    (tmp_path / "c.py").write_text(LOOP)
    assert main(["lint", "--format", "json", str(tmp_path)]) == 1
    data = json.loads(capsys.readouterr().out)
    assert len(data["diagnoses"]) == 1
    assert len(data["notes"]) == 3
    assert main(["lint", str(tmp_path / "a.py")]) == 2


def test_pipes_and_folders_named_like_sources(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "p.py")
    (tmp_path / "d.py").mkdir()
    assert main(["lint", str(tmp_path)]) == 0
    assert main(["lint", str(tmp_path / "p.py")]) == 2  # nobody writes to it, and nobody waits


def notebook(*cells: object) -> bytes:
    made = [{"cell_type": "code", "source": cell} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "# for x in"}, *made]}).encode()


def test_a_notebook_is_one_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(
        notebook(
            ["%matplotlib inline\n", "!pip install torch\n", "import torch\n", "files = !ls"],
            "opt = torch.optim.SGD(net.parameters(), 0.1)\nopt?",
            "%%bash\nfor x in a",
            "%%time\nfor x in loader:\n    net(x).sum().backward()\n    opt.step()\n    await y",
        )
    )
    assert main(["lint", str(path)]) == 1
    assert "n.ipynb:cell 5:4:5: Gradients are never" in " ".join(capsys.readouterr().out.split())
    assert main(["lint", "--fix", str(path)]) == 1  # notebooks are left as they are


def test_a_cell_that_does_not_parse_hides_no_other() -> None:
    raw = notebook("import torch\nopt = torch.optim.SGD(p, 0.1)", "for x in\n", LOOP.partition("\n")[2])
    assert [check for check, _ in found(raw, "n.ipynb")] == ["syntax-error", "zero-grad-missing"]


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b"[]", b"{", b'{"cells": 3}', b'{"cells": [3]}', b"[" * 100000, b"\xff", b"null"]
)
def test_no_notebook(raw: bytes) -> None:
    assert [check for check, _ in found(raw, "n.ipynb")] == ["syntax-error"]


def test_modes_at_import_of_a_notebook_are_its_own() -> None:
    text = "import torch\ntorch.set_grad_enabled(False)\ndef f():\n    pass\n"
    assert found(notebook(text), "n.ipynb") == []
    assert [check for check, _ in found(text.encode())] == ["grad-mode-at-import"]
