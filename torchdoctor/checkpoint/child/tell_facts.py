"""What a file of weights says of itself, as JSON lines: run by torchdoctor's own Python, under a time limit.

``python tell_facts.py FILE TORCH SHAPES REPORT``: TORCH is the version that loads it, or "", SHAPES a JSON
object with the shapes that a model wants under some names, [] for a name that it lacks. FILE is opened only
when it is a regular file, and no link. Nothing in it is executed.
"""

from __future__ import annotations

import json
import os
import stat
import sys

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..")))

from torchdoctor.checkpoint import differences, judge
from torchdoctor.checkpoint.inspect import inspect
from torchdoctor.checkpoint.summary import facts_of
from torchdoctor.checkpoint.target import Target, of_version


def main(path: str, torch: str, shapes: str, report: str) -> None:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return
    contents = inspect(path)
    judge.judge(contents, of_version(torch) if torch else Target())
    found = list(contents.findings)
    wanted = json.loads(shapes)
    if wanted and contents.weights is not None:
        model = {name: tensor.shape for name, tensor in contents.weights.tensors.items()}
        model.update({name: tuple(shape) for name, shape in wanted.items()})
        closest = differences.closest([contents], {name: shape for name, shape in model.items() if shape})
        if closest is not None:
            found += differences.findings(*closest, path, "the model")
    with open(report, "w", encoding="utf-8") as stream:
        for fact in facts_of(contents):
            if fact.name != "ckpt.tensors":  # the report has no use for thousands of names
                stream.write(json.dumps({"name": fact.name, "value": fact.value}) + "\n")
        for one in found:
            fixes = [[fix.do, fix.run, fix.risk] for fix in one.fixes]
            row = {"rule": one.rule, "severity": one.severity.value, "says": one.says, "fixes": fixes}
            stream.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:5])
