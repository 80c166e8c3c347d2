"""Lines that a search found in programs and documents, and those that it found in logs."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.intake.listing import listed
from torchdoctor.model import Form

MM = "mat1 and mat2 shapes cannot be multiplied (4x10 and 12x5)"

HITS = (
    f'./scripts/example.py:60:print("RuntimeError: {MM}")',
    f'v2.1.0:src/retry.py:12:    if "{MM}" in text:',
    f'lib/samples.py:3:9:SAMPLE = "RuntimeError: {MM}"',
    f'gui\\start.py:51:        show("RuntimeError: {MM}")',
    f'src\\check.cpp:31:  throw std::runtime_error("{MM}");',
    f'cmd/agent/main.go:210:\tlog.Fatalf("{MM}")',
    f"README.md:61:12:The tool knows {MM} and 40 others.",
    f'88:print("RuntimeError: {MM}")',
    "./examples/sft.py:17:# NCCL error? see below",
    f'msgid "{MM}"',
    f"<source>{MM}</source>",
    f'<string name="error_mm">{MM}</string>',
)


@pytest.mark.parametrize("line", HITS)
def test_a_line_of_a_program_is_none_of_a_run(line: str) -> None:
    assert listed(line)


RAN = (
    f"train.log:60:RuntimeError: {MM}",
    f"1891:RuntimeError: {MM}",
    f"train.py:88: RuntimeError: {MM}",
    f"run7/rank0.log:214:RuntimeError: {MM}",
    f"slurm-12.out-60-RuntimeError: {MM}",
    "../aten/src/ATen/native/cuda/Loss.cu:240: nll_loss: block: [0,0,0] Assertion `t >= 0` failed.",
    'foo.cu:12:3: error: identifier "half" is undefined',
    "/opt/torch/nn/modules/loss.py:536: UserWarning: Using a target size that is different",
)


@pytest.mark.parametrize("line", RAN)
def test_a_line_of_a_log_stays(line: str) -> None:
    assert not listed(line)


CATALOGS = {
    "gettext": f'msgid ""\nmsgstr ""\n"Language: pl\\n"\n\n#: a.py:1\nmsgid "{MM}"\nmsgstr "x"\n\n'
    f'msgid "b"\nmsgstr "c"\n',
    "Qt": f"<TS>\n<message>\n<source>{MM}</source>\n<translation>x</translation>\n</message>\n<message>\n"
    "<source>b</source>\n<translation>c</translation>\n</message>\n<translation>d</translation>\n</TS>\n",
    "Apple": f'/* one */\n"{MM}" = "x";\n/* two */\n"b" = "c";\n"d" = "e";\n',
    "Java": f"# nl\nerror.mm={MM}\nerror.b=c\nbutton.ok=OK\n",
}


@pytest.mark.parametrize("name", CATALOGS)
def test_a_file_of_translations_is_no_log(name: str) -> None:
    assert read_text(CATALOGS[name]).form is Form.SOURCE_CODE


def test_the_attributes_of_a_record_are_no_translations() -> None:
    record = f"service.name=trainer\nexception.type=RuntimeError\nexception.message={MM}\nthread.name=Main\n"
    assert read_text(record).form is Form.LOG
