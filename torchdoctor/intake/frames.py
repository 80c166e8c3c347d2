"""Whose code a frame is: the user's own, a package's, or Python's."""

from __future__ import annotations

import functools
import re
import sys

from torchdoctor.context_tags import SERVERS
from torchdoctor.model import Frame
from torchdoctor.records import replace

# First parts of paths inside torch: they tell a source build, or a folder that is not called site-packages.
_TORCH_PARTS = (
    "nn/", "autograd/", "cuda/", "distributed/", "optim/", "_dynamo/", "_inductor/", "_ops.py",
    "_tensor.py", "tensor.py", "functional.py", "serialization.py", "multiprocessing/", "jit/", "onnx/",
    "fx/", "ao/", "quantization/", "amp/", "backends/", "hub.py", "_utils.py", "export/", "utils/data/",
    "utils/checkpoint.py", "utils/cpp_extension.py", "utils/_contextlib.py", "utils/_pytree.py",
    "utils/file_baton.py", "_subclasses/", "_higher_order_ops/", "_functorch/", "_prims", "_refs/",
    "_decomp/", "_compile.py", "_jit_internal.py", "_C/", "_lazy/", "sparse/", "testing/_internal/",
    "library.py", "storage.py", "random.py", "overrides.py", "_weights_only_unpickler.py", "xpu/", "mps/",
    "nested/", "package/", "profiler/", "distributions/", "masked/",
)  # fmt: skip
# the scripts of a clone that build it
_TORCH_BUILD = ("/tools/setup_helpers/", "/tools/build_pytorch_libs.py")
# Packages that cannot be imported without torch.
BUILT_ON_TORCH = frozenset({
    "torch", "torchvision", "torchaudio", "vllm", "sglang", "sgl_kernel", "xformers", "flash_attn",
    "deepspeed", "bitsandbytes", "pytorch_lightning", "lightning", "accelerate", "peft", "mmcv", "mmengine",
    "torch_geometric", "torch_scatter", "torch_sparse", "megatron", "apex", "timm", "diffusers",
    "detectron2", "ultralytics", "flashinfer", "unsloth", "mamba_ssm", "exllama", "exllamav2", "spconv",
    "transformer_engine", "auto_gptq", "lmdeploy",
    "MinkowskiEngine", "causal_conv1d", "triton", "sageattention",
})  # fmt: skip
# With those, packages whose files py-spy prints without site-packages, as it prints a user's own modules.
_KNOWN_PACKAGES = BUILT_ON_TORCH | {
    "torchdata", "numpy", "scipy", "pandas", "pyarrow", "polars", "PIL", "cv2", "sklearn", "h5py", "zarr",
    "webdataset", "datasets", "transformers", "tokenizers", "trl", "lightning_fabric", "ray", "wandb",
    "mlflow", "tensorboard", "tqdm", "requests", "urllib3", "httpx", "aiohttp", "fsspec", "s3fs", "gcsfs",
    "boto3", "botocore", "google", "huggingface_hub", "safetensors", "filelock", "joblib", "dask", "numba",
    "jax", "mmdet", "zmq", "grpc", "click", "hydra", "omegaconf", "albumentations", "decord", "av",
    "librosa", "soundfile", "sentencepiece", "matplotlib", "IPython", "ipykernel", "tornado", "pytest",
    "_pytest", "pluggy", "psutil", "pydantic", "yaml", "litdata", "litgpt", "torchmetrics", "torchtune",
    "torchao", "torchrl", "tensordict", "dgl", "monai", "fairseq", "fairscale", "kornia", "einops",
    "sentence_transformers", "optuna", "skorch", "gymnasium", "stable_baselines3", "easyocr", "open_clip",
    "segmentation_models_pytorch", "gsplat", "nvdiffrast", "pytorch3d", "kaolin", "tinycudann",
    "speechbrain", "ignite", "clearml", "onnx", "onnxruntime", "tensorrt", "tensorflow", "keras", "cupy",
    "mpi4py", "horovod", "submitit", "dill", "cloudpickle", "multiprocess", "fire", "absl", "loguru",
    "rich", "typer", "skimage", "imageio", "nibabel", "lmdb", "xarray", "spacy", "gradio", "streamlit",
    "uvicorn", "fastapi", "starlette", "anyio", "gunicorn", "celery", "setuptools", "PyInstaller",
    "llamafactory", "axolotl", "verl", "openrlhf", "colossalai", "nemo", "nerfstudio",
    "lerobot", "whisper", "faster_whisper", "whisperx", "TTS", "neural_compressor",
}  # fmt: skip
# the folders of the plug-ins of ComfyUI and of AUTOMATIC1111's web UI, in a path with slashes
PLUGIN = r"/(?:custom_nodes|extensions-builtin|[^/]*webui[^/]*/extensions)/(?P<name>[^/]+)/"
# What is left of torch's paths where a person put an ellipsis for the rest: names that no user gives.
_ELIDED_TORCH = (
    "_tensor.py", "_ops.py", "_compile.py", "autograd/__init__.py", "autograd/graph.py",
    "autograd/function.py",
    "autograd/grad_mode.py", "nn/modules/", "nn/functional.py", "nn/parallel/", "modules/module.py",
    "modules/linear.py", "modules/conv.py", "modules/container.py", "modules/loss.py", "utils/data/",
    "utils/_contextlib.py", "utils/checkpoint.py", "_utils/fetch.py", "_utils/collate.py", "_utils/worker.py",
    "_utils/pin_memory.py", "dataloader.py", "_dynamo/", "_inductor/", "_functorch/", "_subclasses/",
    "optim/optimizer.py", "optim/lr_scheduler.py", "cuda/__init__.py", "cuda/memory.py", "amp/grad_scaler.py",
    "amp/autocast_mode.py", "distributed/distributed_c10d.py", "distributed/elastic/", "distributed/fsdp/",
    "distributed/launcher/", "distributed/run.py", "multiprocessing/spawn.py",
    "multiprocessing/reductions.py", "serialization.py", "_contextlib.py", "parallel/distributed.py",
)  # fmt: skip
# Packages whose paths people write from their root on, as frozen programs do: no names of own folders.
_SHORTENED = frozenset({
    "torchvision", "torchaudio", "numpy", "scipy", "pandas", "sklearn", "transformers", "accelerate", "peft",
    "diffusers", "deepspeed", "pytorch_lightning", "lightning_fabric", "bitsandbytes", "xformers",
    "flash_attn", "huggingface_hub", "safetensors", "mmcv", "mmengine", "streamlit", "gradio", "starlette",
    "uvicorn", "fastapi", "lmdeploy", "pyspark", "py4j", "PyInstaller", "IPython", "ipykernel", "joblib",
})  # fmt: skip
_SPARK = frozenset({"pyspark", "py4j"})
# Where images of servers keep the sources they run; a clone in somebody's own folder is his own.
_SOURCES = (
    ("/vllm-workspace/vllm/", "vllm"),
    ("/sgl-workspace/sglang/", "sglang"),
    ("/opt/sglang/python/sglang/", "sglang"),
    ("/opt/vllm/vllm/", "vllm"),
    ("/opt/tritonserver/backends/", "tritonserver"),
    ("/databricks/python_shell/", "databricks"),
    ("torchinductor", "torch"),  # caches of code that a package wrote, which nobody edits
    ("/torch_compile_debug/", "torch"),
    ("/torch_extensions/", "torch"),
    ("/.cache/flashinfer/", "flashinfer"),
    ("/.triton/cache/", "triton"),
    ("/transformers_modules/", "transformers_modules"),  # code that came with a model from the hub
    ("/evaluate_modules/", "evaluate"),  # with a metric
    ("/datasets_modules/", "datasets"),  # with a dataset
    ("/databricks/spark/", "pyspark"),
    # what packages write and then run themselves
    ("unsloth_compiled_cache/", "unsloth"),
    ("/Ultralytics/DDP/_temp_", "ultralytics"),
    ("/inductor_cache/", "torch"),
    ("/__autograph_generated_file", "tensorflow"),
)
# of what pip, uv and build front ends unpack, and the part of setuptools that they call
_BUILDS = ("pip-install-", "pip-req-build-", "pip-build-env-", "builds-v0", "build_meta.py", "distutils/")
_INSTALLERS = ("pip", "setuptools", "pyproject_hooks")
# what has no file
_PSEUDO = (
    ("<frozen", "python"),
    ("<pip-setuptools-caller", "pip"),
    ("<attrs", "attrs"),
    ("<@beartype", "beartype"),
    ("<__array_function__", "numpy"),
    ("<decorator-gen", "decorator"),
    ("<eval_with_key>", "torch"),
    ("<torch_package", "torch"),
    ("<template>", "jinja2"),
)
# they read the command line and call the program: their frames stand around every failure of it
COMMAND_LINES = frozenset({"typer", "click", "fire", "absl", "hydra", "jsonargparse", "tyro"})
_SHELL_NAMES = {"torchrun": "torch", "torch-run": "torch", "ipython": "IPython", "jupyter-lab": "jupyter"}


@functools.lru_cache(maxsize=4096)
def package_of(file: str, short: bool = False) -> str:
    """The package a file belongs to, "python" for the standard library, "" for the user's own code.

    ``short``: the path is relative to sys.path, as py-spy prints it, not to the working directory.
    """
    path = file.replace("\\", "/")
    if "//" in path:  # a Windows path out of JSON
        path = path.replace("//", "/")
    if path[:1] == "<" and ">/" in path:  # <site-packages>/torch/hub.py, <home>/net.py
        folder, _, rest = path.partition(">/")
        path = f"{folder[1:]}/{rest}" if folder.endswith("-packages") else f".../{rest}"
    if "..." in path or "…" in path:
        path, elided = _elided(path)
        if elided:
            return elided
    if path[:1] == "<":
        return next((package for head, package in _PSEUDO if path.startswith(head)), "")
    for marker in ("/site-packages/", "/dist-packages/"):
        at = path.rfind(marker)
        if at >= 0:
            return _first_part(path[at + len(marker) :])
    shipped = _shipped(path)
    if shipped:
        return shipped
    if path.startswith(("site-packages/", "dist-packages/")):
        return _first_part(path[14:])
    if path.startswith("code/__torch__/") or "/code/__torch__/" in path:
        return "torch"  # the code inside a TorchScript archive
    at = path.rfind("/torch/")
    rest = path[at + 7 :] if at >= 0 else (path[6:] if path.startswith("torch/") else "")
    if rest and rest.startswith(_TORCH_PARTS):
        return "torch"
    if "/pytorch/torch/" in path or any(part in path for part in _TORCH_BUILD):
        return "torch"  # a clone of its repository
    if path.endswith((".pyx", ".pxi", ".pxd")) and path[:1] not in "/~" and "/" in path:
        return path.split("/", 1)[0]  # Cython prints paths from the package's root
    if _is_stdlib(path):
        return "python"
    first, slash, _ = path.partition("/")
    if slash and first in _SHORTENED:
        return first
    if short and not path.startswith(("/", "~", "./")) and path[1:2] != ":":
        first = path.split("/", 1)[0].removesuffix(".py")
        if "/" in path and first in _KNOWN_PACKAGES:
            return first
        return "python" if first in sys.stdlib_module_names else ""
    return start_script(path)


def _elided(path: str) -> tuple[str, str]:
    """(path, package) of a path of which a person left a part out: ``~/.../_tensor.py``, ``…/torch/hub.py``.

    The package is "" where what is left does not tell; the path is then without the ellipsis.
    """
    at = max(path.rfind("..."), path.rfind("…"))
    rest = path[at:].lstrip(".…").lstrip("])>}/")
    first, slash, _ = rest.partition("/")
    if rest.startswith(_ELIDED_TORCH):
        return rest, "torch"
    if slash and first in _KNOWN_PACKAGES:
        return rest, first
    return ("/" + rest if rest else path), ""


def _shipped(path: str) -> str:
    """The package of a file in an archive, in Spark's folder, or in the sources of a server's image.

    Spark runs its Python part out of pyspark.zip and py4j-0.10.9-src.zip, or out of spark/python; zipapps and
    wheels that are imported as they are look alike. A user's own archive, such as --py-files gives, is his.
    """
    for ending in (".zip/", ".whl/", ".egg/"):
        at = path.rfind(ending)
        if at >= 0:
            first = path[at + len(ending) :].partition("/")[0]
            archive = path[:at].rpartition("/")[2].partition("-")[0]
            if ending != ".zip/" or first in _KNOWN_PACKAGES or first == archive in _SPARK:
                return first.removesuffix(".py")
            if first in _SPARK:
                return first
    at = path.rfind("/pip-install-")
    if at >= 0:  # pip-install-ulfkr2zw/flash-attn_4b67593759ae48ef/setup.py: what pip unpacked to build it
        return re.sub(r"_[0-9a-f]{16,40}$", "", path[at + 1 :].split("/")[1])
    bundle, contents, _ = path.rpartition(".app/Contents/")
    if contents:  # an application of a Mac: /Applications/ComfyUI.app/Contents/Resources/ComfyUI/execution.py
        return bundle.rpartition("/")[2]
    at = path.rfind("/spark/python/")
    rest = path[at + 14 :].removeprefix("lib/") if at >= 0 else ""
    first = rest.partition("/")[0]
    if first in _SPARK:
        return first
    for folder, package in _SOURCES:
        if folder in path:
            return package
    return _of_a_release(path)


def _of_a_release(path: str) -> str:
    """The package whose release somebody unpacked: ``bitsandbytes-0.41.0/bitsandbytes/cextension.py``."""
    if "-" not in path:
        return ""
    for found in re.finditer(r"(?:^|/)([A-Za-z]\w{1,40})-\d+(?:\.\w+){1,3}/(\w{1,40})/", path):
        name = found[1].lower()
        inside = (name, "op_builder") if name == "deepspeed" else (name,)
        if name in _KNOWN_PACKAGES and found[2] in inside:
            return name
    return ""


def _first_part(rest: str) -> str:
    part, _, more = rest.partition("/")
    if part.endswith(".egg") and more:
        part = more.partition("/")[0]
    return part.removesuffix(".py").removesuffix(".pyx") or "python"


def _is_stdlib(path: str) -> bool:
    for marker in ("/lib/python", "/lib64/python"):
        at = path.find(marker)
        if at >= 0 and path[at + len(marker) : at + len(marker) + 1].isdecimal():
            return True
    at = path.find("/python")  # a path that somebody shortened
    version, _, rest = path[at + 7 :].partition("/") if at >= 0 else ("", "", "")
    if version[:1].isdecimal() and rest.split("/", 1)[0].removesuffix(".py") in sys.stdlib_module_names:
        return True
    if path[1:2] == ":":  # Windows keeps the library in Lib, without a version
        lower = path.lower()
        at = lower.rfind("/lib/")
        if at >= 0:
            return path[at + 5 :].split("/", 1)[0].removesuffix(".py") in sys.stdlib_module_names
    return "/Python.framework/Versions/" in path and "/lib/" in path


def with_code(frame: Frame, code: str) -> Frame:
    return Frame(frame.file, frame.line, frame.function, code[:300], frame.package, frame.at)


def as_one_stack(frames: list[Frame], short: bool = False) -> list[Frame]:
    """The frames of one stack, with whose code they are as far as only the other frames tell.

    ``short``: as for ``package_of``. A frozen program's paths are like that, and where torch's are, all are.
    A package that nobody knows keeps private modules (``splat/cuda/_backend.py``), as few people do beside a
    script.
    """
    if len(frames) > 1 and start_script(frames[0].file) == frames[0].package != "":
        called = next((one.package for one in frames[1:] if one.package not in COMMAND_LINES), "")
        # bin/yolo calls ultralytics
        frames = [_of(frames[0], called) if called not in ("", "python") else frames[0], *frames[1:]]
    own = [frame for frame in frames if not frame.package]
    if not own:
        return frames
    if len(frames) > 1 and frames[0].file == "<string>" and "multiprocessing" in frames[1].file:
        # the command line of a spawned child: from multiprocessing.spawn import spawn_main; …
        frames = [_of(frames[0], "python"), *frames[1:]]
    # what a package wrote and runs by exec()
    frames = [
        _of(frame, above.package) if frame.file == "<string>" and above.package != "python" else frame
        for above, frame in zip(frames[:1] + frames, frames, strict=False)
    ]
    if any(frame.package in _INSTALLERS or any(part in frame.file for part in _BUILDS) for frame in frames):
        # a setup.py that an installer runs, and the line by which it does: nobody's file
        frames = [_of(frame, "python") if frame.file == "<string>" else frame for frame in frames]
    if any(part in frame.file for frame in frames for part in _TORCH_BUILD):
        frames = [_of(frame, "torch") if frame.file.endswith("setup.py") else frame for frame in frames]
    frames = _of_a_plugin(_beside_torch(_of_a_clone(frames)))
    if not short and not any(
        frame.package == "PyInstaller" or frame.file.startswith(("torch/", "torch\\")) for frame in frames
    ):
        return frames
    folders = [frame.file.replace("\\", "/").partition("/") for frame in own]
    private = {first for first, _, rest in folders if _private(rest.rpartition("/")[2])} if short else set()
    found = []
    for frame in frames:
        first, _, rest = frame.file.replace("\\", "/").partition("/")
        if not frame.package and rest and first:
            package = first if first in private else package_of(frame.file, True)
            frame = _of(frame, package) if package else frame
        found.append(frame)
    return found


def _of_a_clone(frames: list[Frame]) -> list[Frame]:
    """The frames, with those of a project whose own command runs from a clone as that project's.

    What a start script of an environment calls is installed there, from whatever folder: ns-train of
    ``nerfstudio/nerfstudio``. ``python -m`` runs a part of a package, too. It is not the user's where the
    folder above the package bears its name, and the part lies deeper than a script:
    ``DeepSpeed-MII/mii/launch/server.py``. Where nothing but the clone of a package that many use is in the
    stack, no user's code called it: a server's worker.
    """
    own = [frame for frame in frames if not frame.package]
    clones = {cloned(frame.file) for frame in own}
    if len(clones) == 1 and all(one.function != "<module>" for one in own) and (name := clones.pop()):
        return [_of(one, name) if not one.package else one for one in frames]
    first = frames[0]
    at = next((number for number, frame in enumerate(frames) if not frame.package), None)
    if at is None or any(frame.package not in ("python", first.package) for frame in frames[:at]):
        return frames
    script = start_script(first.file) == first.package != ""
    module = first.package == "python" and first.function == "_run_module_as_main"
    root = project(frames[at].file)[1]
    deep = frames[at].file.replace("\\", "/").removeprefix(root).count("/") > 1
    if not root or not (script or (module and deep and frames[at].function == "<module>")):
        return frames
    name = root.rpartition("/")[2]
    return [
        _of(one, name) if not one.package and one.file.replace("\\", "/").startswith(f"{root}/") else one
        for one in frames
    ]


def _of_a_plugin(frames: list[Frame]) -> list[Frame]:
    """The frames, with those of a server's plug-in as such: it bears the name of the server, which calls it.

    ``vllm_neuron`` below frames of vllm: a program of the user's own would stand above them.
    """
    host = next((frame.package for frame in frames if frame.package != "python"), "")
    if host not in SERVERS:
        return frames
    named = [None if one.package else re.search(rf"/({host}_\w+)/", one.file) for one in frames]
    return [_of(one, name[1]) if name else one for one, name in zip(frames, named, strict=True)]


def _beside_torch(frames: list[Frame]) -> list[Frame]:
    """The frames, with known packages beside torch as such: pip --target filled that folder."""
    paths = [frame.file.replace("\\", "/") for frame in frames]
    torch = next(
        (
            path
            for path, one in zip(paths, frames, strict=True)
            if one.package == "torch" and "/torch/" in path
        ),
        "",
    )
    folder = torch.partition("/torch/")[0] + "/"
    if folder == "/":
        return frames
    found = []
    for path, frame in zip(paths, frames, strict=True):
        name = path.removeprefix(folder).partition("/")[0] if path.startswith(folder) else ""
        found.append(_of(frame, name) if not frame.package and is_known(name) else frame)
    return found


def project(path: str) -> tuple[str, str]:
    """The folders of a clone and of the package in it, which bears its name; ("", "") where none does.

    NeMo/nemo, LLaMA-Factory/src/llamafactory, espnet/espnet2, DeepSpeed-MII/mii.
    """
    parts = path.replace("\\", "/").split("/")
    for number in range(1, len(parts) - 1):
        above = number - 1
        if parts[above] in ("src", "python"):
            above -= 1
        clone, package = parts[max(above, 0)], parts[number]
        name, inside = _letters(clone), _letters(package)
        if inside and (
            name == inside
            or clone.lower().endswith(f"-{package.lower()}")
            or (is_known(package) and name.startswith(inside))
        ):
            return "/".join(parts[: above + 1]), "/".join(parts[: number + 1])
    return "", ""


def cloned(path: str) -> str:
    """The package that many use, and in whose clone a file lies: ``detectron2/detectron2/engine/x.py``."""
    folder, root = project(path)
    name = root.rpartition("/")[2]
    clone = folder.rpartition("/")[2]
    # not mmdet of mmdetection, which people edit
    return name if is_known(name) and _letters(clone) == _letters(name) else ""


def is_known(name: str) -> bool:
    """Is it a package that many use, and nobody's own project?"""
    return name in _KNOWN_PACKAGES


def _letters(name: str) -> str:
    return re.sub(r"[\W\d_]+", "", name.lower())


def _private(name: str) -> bool:
    return name[:1] == "_" and name[:2] != "__"


def _of(frame: Frame, package: str) -> Frame:
    return replace(frame, package=package)


def start_script(file: str) -> str:
    """The package of a start script such as /opt/venv/bin/torchrun, which no user wrote; else ""."""
    path = file.replace("\\", "/")
    if path.endswith(".exe/__main__.py"):
        name = path.rsplit("/", 2)[-2].removesuffix(".exe")
        return _SHELL_NAMES.get(name, name)
    folder, _, name = path.rpartition("/")
    if folder.endswith("bin") and "." not in name and folder.rpartition("/")[2] in ("bin", "sbin"):
        return _SHELL_NAMES.get(name, name)
    return ""
