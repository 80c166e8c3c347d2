"""What the help of each command ends with: two examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

START = """\
torchdoctor, the doctor for PyTorch. To begin with:

  torchdoctor explain train.log         why did this run fail?
  torchdoctor run -- python train.py    run it, and explain it when it fails
  torchdoctor check --python .venv      what will fail in this environment?

torchdoctor --help lists all commands."""

EXAMPLES = {
    "explain": ("explain train.log", "explain --each --format jsonl -o reports.jsonl logs/"),
    "run": ("run -- python train.py", "run --stall 10m -- torchrun --nproc-per-node 8 train.py"),
    "check": ("check --python .venv", "check --target train.py"),
    "facts": ("facts", "facts --save machine.json"),
    "facts diff": ("facts diff good.json bad.json", "facts diff --format json good.json bad.json"),
    "globals": ("globals train.py", "globals -- python train.py --epochs 1"),
    "ddp": ("ddp train:factory", "ddp --format json train:factory"),
    "hang": ("hang 4711", "hang --job --watch 30s"),
    "checkpoint": ("checkpoint model.pt", "checkpoint model.pt --against train:build_model"),
    "selftest": ("selftest", "selftest --only gemm-exact"),
    "gate": ("gate", "gate --tier standard -o verdict.json"),
    "gate merge": ("gate merge verdicts/", "gate merge --format json verdicts/"),
    "gate pairs": (
        "gate pairs rendezvous/ --nodes node1,node2",
        "gate pairs rendezvous/ --nodes 'node[1-4]' --next",
    ),
    "gate policy": ("gate policy learn -o site.toml", "gate policy check site.toml"),
    "gate policy learn": ("gate policy learn -o site.toml", "gate policy learn --facts machine.json"),
    "gate policy check": ("gate policy check site.toml", "gate policy check /etc/torchdoctor/site.toml"),
    "gate verify": ("gate verify verdict.json", "gate verify --format json verdict.json"),
    "gate cleanup": ("gate cleanup", "gate cleanup --kill"),
    "stats": ("stats reports.jsonl", "stats --format html -o failures.html reports.jsonl"),
    "lint": ("lint train.py src/", "lint --fix --advice ."),
    "hook": ("hook enable --python .venv", "hook status --python .venv"),
    "hook enable": ("hook enable --python .venv", "hook enable"),
    "hook disable": ("hook disable --python .venv", "hook disable"),
    "hook status": ("hook status --python .venv", "hook status"),
    "mcp": ("mcp", "mcp --help"),
    "skill": ("skill", "skill --help"),
    "completion": ("completion bash", "completion zsh"),
    "rules": ("rules list", "rules show cuda-oom-too-big"),
    "rules list": ("rules list", "rules list --family memory"),
    "rules show": ("rules show cuda-oom-too-big", "rules show --format json dataloader-shm"),
    "rules lint": ("rules lint", "rules lint --rules my-rules"),
    "rules pages": ("rules pages", "rules pages --site site/rules"),
    "rules new": (
        "rules new pool-full --from train.log",
        "rules new pool-full --from train.log --family data",
    ),
    "rules case": ("rules case dataloader-shm", "rules case dataloader-shm/allocate-in-worker --explain"),
    "rules facts": ("rules facts", "rules facts --format json"),
    "rules nearest": (
        'rules nearest "mat1 and mat2 shapes cannot be multiplied"',
        'rules nearest --format json "expected scalar type Half"',
    ),
    "rules eval": ("rules eval fixtures", "rules eval --only 'dataloader-*' fixtures"),
}


def add(command: click.Command, path: str) -> None:
    """Put the examples behind the help of a command, and of those below it."""
    if path in EXAMPLES:
        lines = "\n".join(f"  torchdoctor {one}" for one in EXAMPLES[path])
        command.epilog = f"\b\nExamples:\n{lines}"
    for name, below in getattr(command, "commands", {}).items():
        add(below, f"{path} {name}")
