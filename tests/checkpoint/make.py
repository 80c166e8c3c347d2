"""Makes ``files.tar.xz``: what five versions of torch write, and what each of them says when it loads it.

    python tests/checkpoint/make.py 1.4=/path/python 1.13=/path/python 2.1=… 2.6=… 2.13=…

Each torch runs in the interpreter named for it, with NumPy beside it; safetensors where it is installed.
Run once; the archive is committed. The files are small: what matters is their form.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ARCHIVE = os.path.join(HERE, "files.tar.xz")


def write(folder):
    """In the interpreter of one torch: everything that this torch writes."""
    import collections
    import pathlib

    import numpy
    import torch
    from torch import nn

    torch.manual_seed(0)
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    sys.path.insert(0, folder)
    with open("project.py", "w") as stream:
        stream.write("import torch\n\nclass Config:\n    pass\n\nclass Net(torch.nn.Module):\n    def "
                     "__init__(self):\n"
                     "        super().__init__()\n        self.body = torch.nn.Linear(3, 2)\n")  # fmt: skip
    import project

    def network():
        return nn.Sequential(
            collections.OrderedDict(
                embed=nn.Embedding(10, 4), body=nn.Linear(4, 6), norm=nn.BatchNorm1d(6), head=nn.Linear(6, 3)
            )
        )

    def save(value, name, **options):
        torch.save(value, name, **options)

    model = network()
    save(model.state_dict(), "state.pt")
    save(model, "whole.pt")
    save(nn.DataParallel(model).state_dict(), "wrapped.pt")
    optimizer = torch.optim.Adam(model[1:2].parameters())
    model[1](torch.ones(2, 4)).sum().backward()
    optimizer.step()
    save(
        {"epoch": 3, "model_state_dict": model.state_dict(), "optimizer_state_dict": optimizer.state_dict(),
         "args": argparse.Namespace(lr=0.1)}, "trainer.pt",
    )  # fmt: skip
    kinds = {
        "half": torch.ones(3).half(),
            "double": torch.ones(2, 2).double(), "long": torch.arange(5), "byte": torch.arange(4).byte(),
        "bool": torch.tensor([True, False]), "empty": torch.ones(0, 3), "scalar": torch.tensor(2.5),
        "bfloat16": torch.ones(4).to(torch.bfloat16), "turned": torch.arange(6).float().reshape(2, 3).t(),
        "sparse": torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)),
            "parameter": nn.Parameter(torch.ones(2)),
    }  # fmt: skip
    save(kinds, "kinds.pt")
    shared = torch.ones(5, 4)
    save({"embed.weight": shared, "head.weight": shared, "body.weight": torch.zeros(2)}, "tied.pt")
    save({"slice": torch.zeros(100, 1000)[3], "whole": torch.ones(2)}, "view.pt")
    save({"weight": torch.ones(2), "loss": numpy.float64(0.5), "array": numpy.arange(3.0)}, "numpy.pt")
    save({"weight": torch.tensor([1.0, float("nan"), float("inf")]), "bias": torch.ones(2)}, "nan.pt")
    config = project.Config()
    config.width = 4
    save({"weight": torch.ones(2), "config": config}, "class.pt")
    save(project.Net(), "net.pt")
    save({"weight": torch.ones(2), "path": pathlib.PurePosixPath("a/b")}, "path.pt")
    odd = {"weight": torch.ones(2), "set": {1, 2}, "bytes": b"abc",
        "complex": 1 + 2j, "size": torch.Size([2]),
           "dtype": torch.float32, "device": torch.device("cpu"),
               "counter": collections.Counter("aab")}  # fmt: skip
    for key, value in odd.items():
        save({"weight": odd["weight"], key: value}, f"odd-{key}.pt")
    if version >= (1, 13):
        save(model.state_dict(), "legacy.pt", _use_new_zipfile_serialization=False)
    else:
        save(model.state_dict(), "zip.pt", _use_new_zipfile_serialization=True)
    torch.jit.save(torch.jit.script(nn.Linear(2, 2)), "script.pt")
    tag = torch.serialization.location_tag
    torch.serialization.location_tag = lambda storage: "cuda:1"
    save({"weight": torch.ones(2), "bias": torch.ones(1)}, "cuda.pt")
    torch.serialization.location_tag = tag
    if version >= (2, 1):
        with torch.device("meta"):
            save({"weight": torch.ones(2, 3)}, "meta.pt")
        save({f"_orig_mod.{name}": value for name, value in model.state_dict().items()}, "compiled.pt")
    if version >= (2, 6):
        save({"weight": torch.ones(4).to(torch.float8_e4m3fn)}, "float8.pt")
        distributed(model)
    try:
        from safetensors.torch import save_file
    except ImportError:
        return
    save_file(model.state_dict(), "state.safetensors", {"format": "pt"})
    save_file(
        {"a": torch.ones(3).to(torch.bfloat16), "b": torch.ones(2, 2).to(torch.float8_e5m2)},
        "kinds.safetensors",
    )
    save_file({f"base_model.model.q.lora_{x}.weight": torch.ones(2, 2) for x in "AB"}, "adapter.safetensors")


def distributed(model):
    import torch.distributed.checkpoint as dcp

    dcp.save({"model": model.state_dict(), "step": 3}, checkpoint_id="dcp")


def tell(folder, names):
    """In the interpreter of one torch: what it says of each file, its own and those of older ones."""
    import torch

    sys.path.insert(0, os.path.join(folder, names[0].split("/")[0]))
    told = {}
    for name in names:
        path = os.path.join(folder, name)
        row = {}
        try:
            row["shapes"] = shapes(
                torch.load(path, map_location="cpu", **({"weights_only": False} if newer(torch) else {}))
            )
        except Exception as error:
            row["fails"] = f"{type(error).__name__}: {error}"[:300]
        if newer(torch):
            try:
                torch.load(path, map_location="cpu", weights_only=True)
                row["admitted"] = True
            except Exception as error:
                row["admitted"] = False
                row["said"] = str(error)[-600:]
        told[name] = row
    print("\n" + json.dumps(told))


def newer(torch):
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (1, 13)


def shapes(value):
    """Names, shapes and kinds of number of the state dict in a loaded value."""
    if hasattr(value, "state_dict"):
        value = value.state_dict()
    if isinstance(value, dict) and "model_state_dict" in value:
        value = value["model_state_dict"]
    return {
        name: [list(one.shape), str(one.dtype).replace("torch.", "")]
        for name, one in value.items() if type(one).__name__ in ("Tensor", "Parameter")
    }  # fmt: skip


def main(interpreters):
    with tempfile.TemporaryDirectory() as folder:
        for version, python in interpreters.items():
            subprocess.run(
                [python, __file__, "--write", os.path.join(folder, version)],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        names = sorted(
            os.path.relpath(os.path.join(where, name), folder)
            for where, _, files in os.walk(folder) for name in files if name.endswith(".pt")
        )  # fmt: skip
        told = {}
        for version, python in interpreters.items():
            for writer in interpreters:
                if order(writer) <= order(version):
                    own = [name for name in names if name.startswith(writer + "/")]
                    done = subprocess.run(
                        [python, __file__, "--tell", folder, *own], check=True, stdout=subprocess.PIPE
                    )
                    for name, row in json.loads(done.stdout.decode().strip().splitlines()[-1]).items():
                        told.setdefault(name, {})[version] = row
        with open(os.path.join(folder, "told.json"), "w") as stream:
            json.dump(told, stream, indent=0, sort_keys=True)
        with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
            for name in sorted(os.listdir(folder)):
                archive.add(os.path.join(folder, name), name, filter=plain)
    print(f"{ARCHIVE}: {os.path.getsize(ARCHIVE):,} bytes, {len(names)} files of torch.save")


def order(version):
    return tuple(int(part) for part in version.split("."))


def plain(member):
    if "__pycache__" in member.name:
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2])
    elif sys.argv[1:2] == ["--tell"]:
        tell(sys.argv[2], sys.argv[3:])
    elif sys.argv[1:]:
        main(dict(one.split("=", 1) for one in sys.argv[1:]))
    else:
        sys.exit(__doc__)
