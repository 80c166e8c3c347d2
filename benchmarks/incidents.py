"""The share of incidents in which the first failing rank is named, on a generated suite.

    python benchmarks/incidents.py [--causes] [--count 120] [--seed 20261128] [--keep FOLDER] [-v]

Exit code 0 when at least 95 % are right and every tie is said to be one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import incidents.causes as causes  # noqa: E402  the suite lies beside the tests
from incidents.suite import build, score  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=20261128)
    parser.add_argument("--keep", type=Path, help="write the incidents into this folder and leave them there")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the wrong ones")
    parser.add_argument("--causes", action="store_true", help="one cause each, in four layouts")
    args = parser.parse_args()
    if args.causes:
        return _causes(args)
    with tempfile.TemporaryDirectory() as scratch:
        found = score(build(args.keep or Path(scratch), args.count, args.seed))
    if args.verbose:
        for label, rank, tie, by in found.wrong:
            wanted = f"tie {list(label.tie)}" if label.tie else f"rank {label.rank}"
            print(f"{label.name:22} {label.layout:17} wanted {wanted}, told rank {rank} tie {tie}: {by}")
    print(f"first failing rank: {found.right['rank']} of {found.all['rank']} ({found.share:.1%})")
    print(f"ties said to be one: {found.right['tie']} of {found.all['tie']} ({found.ties:.1%})")
    print(f"no rank failed: {found.right['none']} of {found.all['none']}")
    return 0 if found.share >= 0.95 and found.ties == 1.0 else 1


def _causes(args: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        found = causes.score(causes.build(args.keep or Path(scratch), args.count, args.seed))
    if args.verbose:
        print(*found.wrong, sep="\n")
    print(f"first failing rank: {found.ranks} of {found.decidable}")
    print(f"ties said to be one: {found.ties} of {found.tied}")
    print(f"cause: {found.causes} of {args.count}")
    right = found.ranks >= 0.98 * found.decidable and found.causes >= 0.98 * args.count
    return 0 if right and found.ties == found.tied else 1


if __name__ == "__main__":
    sys.exit(main())
