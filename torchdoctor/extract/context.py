"""In which surroundings a text was printed: system, device, board, runtime, interpreter, program, back end.

Each tag has forms that only its surroundings print: paths, prompts, prefixes, names of devices. What several
print alike is no form. Unknown stays unknown; several may hold. The tags are those of ``context_tags``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.context_tags import SERVERS, TAGS
from torchdoctor.extract import once_a_text, slurm
from torchdoctor.extract.interpreter import interpreter_among
from torchdoctor.model import Event, Fact, Frame, Transcript
from torchdoctor.patterns import pattern, search

DIMENSIONS = ("system", "distribution", "device", "board", "runtime", "python", "program", "backend")

FACTS: dict[str, str] = {
    **{f"context.{name}": f"list: of {', '.join(TAGS[name])}" for name in DIMENSIONS},
    "context.in_image": "bool: the program lies right below the root, its packages are root's: an image",
    "context.root": "bool: root runs the program, by a prompt of root's or files of root's home",
    "context.interpreter": "text: the interpreter that ran, from the paths of its frames",
    "context.script": "text: the script that was started, from the outermost frame of the user's",
    "context.ranks": "int: how many ranks are named",
    "context.gfx": "text: architecture of the AMD card, as ROCm names it; unknown among several",
    "context.l4t": "text: release of a Jetson's Linux, as /etc/nv_tegra_release has it: 35.4.1",
    "context.l4t_image": "text: the release that a container's image was made for, by its tag: 32.4.2",
    "context.tasks_per_node": "int: how many tasks of a node a job script or srun asks for",
    "context.gpus_per_task": "int: how many GPUs Slurm binds to each task; each sees these alone, from 0 on",
    "context.job": "text: number of the Slurm job; unknown among several",
    "context.container": "text: id of the container, by its shell's prompt; unknown among several",
    "context.service": "text: name of the one service of docker compose whose lines the text has",
    "context.pod": "text: name of the Kubernetes pod; unknown among several",
    "context.gcc_module": "text: GCC or gcc, as the cluster spells its modules, by the path of one",
    "context.model": "text: the model that a server was started with, as the text names it first",
}

_EDGE_CHARS = 100_000  # of a long text its beginning and its end are searched
_EVENT_CHARS = 4_000

# tag -> the forms in which a text shows it
_FORMS: dict[str, tuple[str, ...]] = {
    "wsl": ("microsoft-standard", "/mnt/c/", "/usr/lib/wsl", "WSL2", "Windows Subsystem for Linux",
        "WSL environment detected", "WSL is detected"),
    "windows": ("WinError", ".dll", "cl.exe", "Platform: Windows", "[MSC v.", "win32", "Windows fatal",
                "'charmap' codec can't", "Microsoft Visual C++ 14"),
    "macos": (
        "/Users/", "macOS", ".dylib", "darwin", "MPS backend", "MPS device", "/opt/homebrew/",
        "/Library/Frameworks/", "/AppleInternal/", "MetalPerformanceShaders", "com.apple.",
    ),
    "linux": (
        "/home/", "/usr/lib/", "/usr/local/lib/", "/root/", "/opt/conda/", "/workspace/", "/data/", "/mnt/",
        ".so.", "ubuntu", "Ubuntu", "/proc/", "/dev/shm",
        # its numbers of what other systems number otherwise
        "(errno: 98 ", "(errno: 97 ", "[Errno 98]", "[Errno 104]", "[Errno 110]", "[Errno 111]",
    ),
    # by the folders of their compilers and kernels, and by name; debian stands for Ubuntu, too
    "debian": ("/x86_64-linux-gnu/", "/aarch64-linux-gnu/", "/dist-packages/", "ubuntu", "Ubuntu", "Debian",
               "apt-get "),
    "redhat": ("/x86_64-redhat-linux/", "/aarch64-redhat-linux/", "(Red Hat ", "CentOS", "Rocky Linux",
               "AlmaLinux", "Fedora", "/opt/rh/", ".el7", ".el8", ".el9"),
    "arch": ("/opt/cuda/bin/", "/opt/cuda/targets/", "/opt/cuda/include/", "Arch Linux", "-arch1-", "Manjaro",
             "MANJARO"),
    "suse": ("/x86_64-suse-linux/", "SUSE"),
    "amd": (
        "HIP error", "HIP out of memory", "ROCm", "+rocm", "/rocm", "hipError", "Radeon", "gfx9", "gfx10",
        "gfx11", "gfx12", "MIOpen", "rocBLAS", "RCCL", "amdgpu", "HIP_VISIBLE_DEVICES", "HIP initialization",
        "Memory access fault by GPU", "HW Exception by GPU", "HSA_STATUS", "No HIP GPUs", "miopenStatus",
        "libbitsandbytes_hip", "libbitsandbytes_rocm", "HIPBLAS_STATUS_", "/ops.hip", "rocblaslt ",
        "\\torch_hip.dll", "\\amdhip64",
    ),
    "intel": ("+xpu", "XPU out of memory", "oneAPI", "level_zero", "Intel(R) Arc"),
    "apple": ("MPS backend", "MPS device", "mps:0", "Apple M", "PYTORCH_MPS", "torch.mps", "torch/mps"),
    "nvidia": (
        "NVIDIA", "nvidia", "CUDA error", "CUDA out of memory", "GeForce", "cuDNN", "CUDNN_", "CUBLAS_",
        "libcuda", "NCCL", "nvcc", "Tesla ", "RTX ", "CUDA Version", "+cu1",
    ),
    "jetson": ("tegra", "Tegra systems", "jetson", "Jetson", "JetPack", "jetpack", "(nvgpu)", "l4t", "L4T",
               "NvMapMem"),
    "aarch64": ("aarch64", "ARMv8", "GH200", "GB200", "GB10"),
    "desktop": ("GeForce", "TITAN", "Radeon RX"),  # what a maker calls the cards that also draw
    "docker": (
        "docker run", "docker exec", "docker-compose", "docker compose", ".dockerenv", "nvcr.io/",
        "docker: Error response", "could not select device driver", "nvidia-container-cli",
        "This container image and its contents", "_1  | ", "-1  | ", "(press Ctrl+C again to force)",
        "/vllm-workspace/", "/sgl-workspace/",
    ),
    "compose": ("docker-compose", "docker compose", "_1  | ", "-1  | ", "(press Ctrl+C again to force)"),
    "dockerfile": (  # the image is being built, where no GPU is and nothing that a shell exported
        "] RUN ", "executor failed running [", "failed to solve", ": RUN ", "The command '/bin/sh -c",
        "Removing intermediate container",
    ),
    "podman": ("podman run", "podman exec"),
    "apptainer": (  # and Singularity, as it was called
        "apptainer exec", "apptainer run", "apptainer shell", "singularity exec", "singularity run",
        "singularity shell", "/.singularity.d/", "Apptainer> ", "Singularity> ",
    ),
    "kubernetes": (
        "KUBERNETES_", "kubectl ", "OOMKilled", "CrashLoopBackOff", "kubelet", "kubepods",
        "/var/run/secrets/", ".svc.cluster.local", "If this is a GPU node", "nvidia.com/gpu.", "amd.com/gpu.",
    ),
    "slurm": ("slurmstepd", "srun: ", "sbatch ", "SLURM_", "/slurmd/", "slurm_script", "scancel", "SLURMEnv",
        "oom_memcg=/slurm", "JobState=", "NODELIST(REASON)"),
    "modules": ("LOADEDMODULES", "LMOD_", "/modulefiles/"),
    "ray": ("(RayWorkerWrapper ", "ray::", "raylet", "ray.exceptions", "/ray/_private/", "RayTaskError"),
    "colab": ("/content/", "https://localhost:8080/", "googlecolab", "google.colab", "COLAB_"),
    "kaggle": ("/kaggle/", "KAGGLE_"),
    "jupyter": ("ipykernel", "ipython-input", "Cell In[", "IPython", "notebook_launcher"),
    "ci": ("/home/runner/", "GITHUB_ACTIONS", "hostedtoolcache", "gitlab-runner", "/builds/"),
    "embedded": ("python_embeded", "python_embedded"),
    "uv": (
        "/uv/python/", "uv/builds-v0/", "uv/cache/builds-v0/", ".local/share/uv", "uv pip", "uv run ",
        "$ uv ", "uv sync", "uv add ", "DEBUG uv 0.",
    ),
    # a folder with a pyproject.toml, of which uv makes the environment anew; beside uv
    "uv-project": ("uv sync", "uv add ", "uv lock", "DEBUG Found project root: "),
    "conda": ("/envs/", "conda", "miniforge", "mambaforge", "$PREFIX/"),
    "venv": ("/.venv/", "/venv/", "/env/lib/python", "Scripts/python", "(venv)", "(.venv)"),
    "system-python": ("/usr/lib/python3", "/dist-packages/"),
    "32-bit": ("32 bit (Intel)]",),  # sys.version of a Python for Windows
    "trainer": ("transformers/trainer.py", "transformers/trainer_seq2seq.py"),
    "lightning": ("/pytorch_lightning/", "/lightning/pytorch/", "/lightning_fabric/", "pytorch_lightning."),
    "accelerate": ("/accelerate/", "accelerate launch", "Distributed environment: "),  # its state
    "deepspeed": ("/deepspeed/", "[deepspeed]", "DeepSpeed", "deepspeed --", "--deepspeed"),
    "fsdp": ("/distributed/fsdp/", "FullyShardedDataParallel", "/_composable/fsdp/", "FSDP"),
    "peft": ("/peft/", "PeftModel", "lora_A", "base_model.model."),
    "diffusers": ("/diffusers/",),
    "vllm": (
        "/vllm/", "vllm.", "(EngineCore", "non-default args: {", "vllm serve", "llm_engine.py:",
        "multiproc_executor.py", "Engine core initialization failed",
    ),
    "sglang": ("/sglang/", "sglang.", "sgl_kernel"),
    "tgi": ("text_generation_server", "text_generation_launcher", "text-generation-launcher"),
    "comfyui": (
        "ComfyUI/main.py", "ComfyUI\\main.py", "ComfyUI/execution.py", "ComfyUI\\execution.py", "/comfy/",
        "\\comfy\\", "ComfyUI_windows_portable", "custom_nodes", "Prompt executed", "got prompt",
        "Requested to load ", "!!! Exception during processing",
    ),
    "ultralytics": (
        "/ultralytics/", "Ultralytics", "PyTorch: starting from ", "dfl_loss", "Closing dataloader mosaic",
    ),
    "megatron": ("/megatron/", "Megatron", " | consumed samples: "),
    "webui": (
        "stable-diffusion-webui", "webui.py", "webui-user", "/webui/modules/", "\\webui\\modules\\",
        "/webui/extensions/", "\\webui\\extensions\\",
    ),
    "invokeai": ("invokeai", "InvokeAI"),
    "zluda": ("ZLUDA", "zluda", "Files\\AMD\\ROCm\\"),  # torch for CUDA over AMD's HIP SDK for Windows
    "libtorch": (  # a program in C++ or Rust
        "/libtorch/lib/", "/libtorch/include/", "libtorch\\lib", "<torch/torch.h>", "<torch/script.h>",
        "torch::cuda::", "/tch-0.", "terminate called after throwing an instance of '",
    ),
    # its programs name themselves in paths, options and log lines, and it is not in the frames: it is C++
    "ctranslate2": ("CTranslate2", "ctranslate2", "faster_whisper", "faster-whisper", "Faster Whisper",
                    "hisperX", "hisperx"),
    "triton-server": (  # NVIDIA's, whose C++ files head its log's lines
        "/opt/tritonserver/", "== Triton Inference Server ==", " model_repository_manager.cc:",
        " model_lifecycle.cc:", " tritonserver.cc:", "load failed for libtorch model -> '",
    ),
    "nccl": ("NCCL", "ProcessGroupNCCL", "RCCL"),
    "gloo": ("Gloo ", "gloo/", "ProcessGroupGloo"),
    "mpi": ("ProcessGroupMPI", "mpirun", "MPI_Init"),
}  # fmt: skip
# A build of torch for AMD or Apple says "cuda" of its devices, too, and drops NVIDIA's names in its hints.
_OWN_NAMES = ("GeForce", "Tesla ", "RTX ", "NVIDIA-SMI", "libcuda.so")
# 2.9 and later says "CUDA error", too; its hints, files and libraries tell which build it is
_OF_CUDA = ("CUDA error", "CUDA out of memory")
_OF_ROCM = ("hipError", "AMD_SERIALIZE_KERNEL=3", "libc10_hip", "/c10/hip/", "HIPGuardImpl", "HSA_STATUS_")
_FAILED = r"(?m)^\s*([\w./-]{1,200}\.py) FAILED\s*$"  # the box of torchelastic
_SCRIPT = r"(?:.{0,300}[\\/])?[\w.-]+\.py"
_AS_TYPED = r"(?:\.{1,2}[\\/])?(?:\w[\w.-]*[\\/])*[\w.-]+\.py"  # a path from where the program was started
# What is torch's hint or a package's address in a sentence, and not where it was printed.
_HINTS = ("hub.docker.com", "/issues/", "https://github.com", "docs.nvidia.com", "pytorch.org/docs")
# Colab's Python and its cells, where no packages of a person's own lie
_OF_COLAB = ("/usr/lib/python3", "<ipython-input", "/tmp/ipython-input-")
# what is not there: "HIP runtime version: N/A" of a table, torch's words for a driver that it did not find
_NOTHING = (
    r": *(?:N/A|None|False|No CUDA|Could not collect)\s*$"
    r"|Found no NVIDIA driver|check that you have an NVIDIA GPU"
    r"|\bCUDA(?: or |/)ROCm\b|\bROCm(?: or |/)CUDA\b"  # the choice that all have
)

_MADE = r"[\\/]\.[\w-][\w.-]*[\\/]"  # below a hidden folder: what a program wrote to start functions by
_BATCH = "/kaggle/src/script.py"  # what Kaggle runs as a script, without a cell to write into
_PYTHON_FILE = r"^(?!code/)(?:.*\.py$|<(?:stdin|string|ipython))"  # code/ is of an archive of TorchScript
_DRIVE = r"(?<![\w.@:/-])[A-Za-z]:[\\/]{1,2}\w"
_OWN_GFX = r"(?:amdhsa--|GPU arch ?: ?|gcnArchName[=: '\"]+)(gfx\d{3,4}[a-f]?)\b"
_POD = (
    r"(?:\bkubectl (?:-n \S{1,60} )?(?:logs|exec|describe pods?) (?:-n \S{1,60} |--?[\w-]{2,40} ){0,3}"
    r"|\bpod[/ ]\"?)"
    r"((?=[a-z0-9.]*-)[a-z0-9][a-z0-9.-]{2,60}[a-z0-9])(?![\w-])"
)
# a server's command, and the settings that it prints
_MODEL = (
    r"(?:\b(?:vllm serve|text-generation-launcher) [\"']?|--model(?:-path|-id)?[= ][\"']?"
    r"|\bmodel(?:_path)?='|'model(?:_tag)?': ')((?!-)[\w./:@-]{2,120})"
)
_IN_TORCH = (
    r"(?:/[\w./-]{1,200}/lib/python3\.\d+|\b[A-Za-z]:\\[\w.\\-]{1,200}\\[Ll]ib)[\\/]site-packages"
    r"(?=[\\/]torch[a-z]{0,10}[\\/])"
)
_BUNDLED = r"(?:\b[A-Za-z]:)?(?:[\\/][\w.-]{1,80}){1,30}[\\/]pip_prebundle(?=[\\/]torch\b)"
_L4T = r"# R(\d\d) \(release\), REVISION: (\d+(?:\.\d+)?)"  # the head of /etc/nv_tegra_release
_L4T_IMAGE = r"\bl4t-[a-z]{1,20}:r(3\d\.\d{1,2}(?:\.\d{1,2})?)\b"
_TOLD = "ython executable: "
_OWN_PYTHON = r"[Pp]ython executable: (?P<python>[^\s'\"][^\n'\"]{0,300}[\\/]python[\w.]*)[ \t\r]*(?m:$)"
_RANKS_BY = (
    r"(?P<python>/(?!usr/bin/)[^\s'\",\[]{1,200}/bin/python[\d.]{0,6})(?:', '| )-m(?:', '| )"
    r"torch\.distributed\.(?:run|launch)\b"
)
_BACKSLASHES = r"(?<![\w.-])\w[\w.-]{1,80}(?:\\[\w.-]{2,80}){1,40}\.(?:py|pyd|exe|dll|lib|cu|cpp|h)\b"
# what an image's builder makes there; the others are the system's, of users, or of notebooks
_RIGHT_BELOW = (
    r"/(?:workspace/.*|(?!(?:usr|opt|home|root|tmp|mnt|srv|var|media|data|lib|run|etc|nix|content|kaggle)/)"
    r"[\w.-]+/[\w.-]+\.py)"
)
_OF_ROOT = r"^/usr/local/lib/python3\.\d+/(?:dist|site)-packages/"
_HOME_OF_ROOT = r"(?<![\w.])/root/[.\w]"
_PROMPT_OF_ROOT = r"(?m)^\s{0,8}(?:\([^)\n]{1,60}\) ?){0,3}\[?root@[\w.-]{1,64}[: ][^\n#]{0,200}#"
_CONTAINER = r"\b[\w-]{1,32}@[0-9a-f]{12}:|(?m:^/app/\S{1,200}\.py$|^[\w.-]+[_-]\d+ exited with code \d+$)"
_CONTAINER_ID = r"(?m)^\s{0,8}(?:\([\w.-]{1,40}\) )?[\w-]{1,32}@([0-9a-f]{12}):[^\n]{0,200}[#$]"
_SRUN = rf"srun {slurm.OPTION}{{0,12}}\S{{0,200}}(?:python|torchrun|bash)"
_SERVICE = r"([A-Za-z][\w.-]{0,60}?)[-_]\d{1,3}"
# a program in a tree of modules, as EasyBuild and admins lay them out (/software/CUDA/11.8.0/bin), or Spack
_MODULE = (
    r"/(?:software|easybuild|apps|sw|modules|packages|pkgs|compilers)/(?:[\w.+-]+/){0,5}"
    r"(?P<name>CUDA(?:core)?|GCC(?:core)?|cuda(?:core)?|gcc(?:core)?|cudatoolkit|nvhpc|NVHPC)/\d+\.\d[\w.-]*/"
    r"|/spack/linux-[\w.-]+/(?:[\w.-]+/)?(?P<spack>cuda|gcc)-\d"
)
_IN_MODULES = ("/CUDA", "/GCC", "/cuda", "/gcc", "/NVHPC", "/nvhpc")
_AT_BOARDS = ("@jetson", "@nano", "@orin", "@xavier", "@agx", "@tx")
# what has more spellings than one: a new container's prompt, AMD's names of cards, the tag of an L4T image
_SPELLINGS = (
    ("runtime", "docker", ("@", "/app/", " exited with code "), _CONTAINER),
    ("runtime", "dockerfile", ("#",), r"(?m)^#\d{1,3} \d{1,5}\.\d{1,3}[ \t]"),  # a step's line, by BuildKit
    ("runtime", "jupyter", ("!pip ", "!uv "), r"(?m)^!(?:pip|uv) \w"),
    ("device", "amd", ("AMD", "RX"), r"\b(?:AMD|RX)[ -]?\d{4} ?(?:XTX?|GRE)\b"),
    # not as the second choice in an example, {'':torch.cuda.…} or {'':torch.xpu.…}, as accelerate has it
    ("device", "intel", ("torch.xpu",), r"(?<!:)torch\.xpu\b"),
    ("runtime", "slurm", ("srun ",), _SRUN),
    ("runtime", "modules", ("module ",), r"(?m)(?:^|[$#>;&]) {0,8}module (?:load|avail|spider|add|swap) \w"),
    ("runtime", "modules", _IN_MODULES, _MODULE),
    ("python", "32-bit", ("-32",), r"[\\/]Python3\d{1,2}-32[\\/]"),  # the folder of its installer
    ("system", "windows", ("Windows-",), r"\bWindows-\d+-10\.0"),
    ("system", "windows", ("python.exe -m pip",), r"To update, run: \S*python\.exe -m pip\b"),  # pip itself
    ("system", "windows", ("-win_amd64",), r"-win_amd64\.whl\b"),
    # an object, or a frame of C++, above the 47 bits that x86-64 gives a process
    ("board", "aarch64", ("0x",), r"(?:\bat |\[)0x(?:0000)?[89a-f][0-9a-f]{11}[>\]]"),
    ("board", "jetson", ("r3", "# R"), rf"[:_-]r3\d\.\d+\.\d+\b|{_L4T}"),
    # the GPU of a Jetson, as torch and programs that print it name it; no card has these capabilities
    ("board", "jetson", ("Orin", "Xavier"), r"\bOrin\b|[(\"]Xavier(?:, \d|\")|\bXavier with CUDA"),
    ("board", "jetson", ("NV Power Mode: ",), r"\bNV Power Mode: "),  # of nvpmodel
    # the names that its boards bear, at a prompt
    (
        "board",
        "jetson",
        _AT_BOARDS,
        r"(?m)^[\w.-]{1,32}@(?:jetson|nano|orin|xavier|agx|tx[12])[\w-]{0,30}:[~/]",
    ),
    ("board", "jetson", ("capability sm_",), r"capability sm_(?:53|62|72|87)\b"),
)
# where programs run on no other system
_OF_LINUX = ("slurm", "modules", "kubernetes", "podman", "apptainer", "colab", "kaggle")
# where the files of users and programs lie, from the root; /usr/local, /opt and /tmp are on Macs, too
_PLACES = {
    "windows": r"[A-Za-z]:[\\/]|[^/]*\\",
    "macos": r"/(?:Users|Applications|Library|System|Volumes|private)/|/opt/homebrew/|/usr/local/Cellar/",
    "linux": r"/(?!usr/local/|opt/|tmp/|var/)\w|/usr/local/lib/python3[\d.]*/dist-packages/",
}


class _Text:
    """The events and frames of a transcript as one text, with the event at each place."""

    def __init__(self, transcript: Transcript) -> None:
        self._starts: list[int] = []
        self._events: list[Event] = []
        parts: list[str] = []
        at = 0
        for event in _edges(transcript.events):
            paths = "\n".join(frame.file for frame in event.frames)
            part = f"{event.text[:_EVENT_CHARS]}\n{paths}\n"
            if "\\" in paths:
                part += paths.replace("\\", "/") + "\n"
            self._starts.append(at)
            self._events.append(event)
            parts.append(part)
            at += len(part)
        self.text = "".join(parts)
        self.paths = [frame.file for event in transcript.events for frame in event.frames]

    def source(self, at: int) -> str:
        from bisect import bisect_right

        event = self._events[bisect_right(self._starts, at) - 1]
        return event.place()

    def find(self, form: str) -> int:
        """Where the form stands outside a line that is somebody's hint; -1 where it does not."""
        at = self.text.find(form)
        while at >= 0 and self._in_hint(at):
            at = self.text.find(form, at + 1)
        return at

    def _in_hint(self, at: int) -> bool:
        begin, end = self.text.rfind("\n", 0, at) + 1, self.text.find("\n", at)
        line = self.text[begin : end if end >= 0 else None]
        at -= begin
        end = line.find(". ", at)
        sentence = line[line.rfind(". ", 0, at) + 1 : end if end >= 0 else None]
        return any(hint in sentence for hint in _HINTS) or _says_nothing(sentence)


def _says_nothing(sentence: str) -> bool:
    return bool(search(_NOTHING, sentence, "N/A", "None", "False", "CUDA", "Could not", "NVIDIA", "ROCm"))


def _edges(events: tuple[Event, ...]) -> list[Event]:
    """All events of a text of ordinary length; of a longer one those of its beginning and end."""
    first: list[Event] = []
    size = 0
    for event in events:
        size += min(len(event.text), _EVENT_CHARS)
        if size > _EDGE_CHARS:
            break
        first.append(event)
    last: list[Event] = []
    size = 0
    for event in reversed(events[len(first) :]):
        size += min(len(event.text), _EVENT_CHARS)
        if size > _EDGE_CHARS:
            break
        last.append(event)
    return [*first, *reversed(last)]


def extract(event: Event, transcript: Transcript) -> Iterator[Fact]:
    """The surroundings of the whole text, and the script that the event's frames name."""
    yield from _of_text(transcript)
    script = _script(event, transcript)
    if script:
        yield Fact.known("context.script", script, "text")


def builds_image(transcript: Transcript) -> bool:
    """Is it the output of a step of a Dockerfile?"""
    return "dockerfile" in tags("runtime", transcript)


def tags(dimension: str, transcript: Transcript) -> tuple[str, ...]:
    """What the whole text shows of one dimension of the surroundings."""
    found = (fact.value for fact in _of_text(transcript) if fact.name == f"context.{dimension}")
    return next((tuple(map(str, value)) for value in found if isinstance(value, tuple)), ())


@once_a_text
def _of_text(transcript: Transcript) -> tuple[Fact, ...]:
    return tuple(_found(transcript))


def _found(transcript: Transcript) -> Iterator[Fact]:
    text = _Text(transcript)
    seen: dict[str, dict[str, int]] = {name: {} for name in DIMENSIONS}
    for name in DIMENSIONS:
        for tag in TAGS[name]:
            places = [at for form in _FORMS.get(tag, ()) if (at := text.find(form)) >= 0]
            if places:
                seen[name][tag] = min(places)
    _settle(seen, text)
    if any(event.cells for event in transcript.events):
        seen["runtime"].setdefault("jupyter", 0)
    if any(map(_of_ray, transcript.events)):
        seen["runtime"].setdefault("ray", 0)
    if services := _services(transcript) if "docker" in seen["runtime"] else ():
        seen["runtime"].setdefault("compose", seen["runtime"]["docker"])
    for name, tags in seen.items():
        if tags:
            yield Fact.known(f"context.{name}", tuple(tags), text.source(min(tags.values())))
    paths = [*(text.paths or _named_paths(text)), *_bundled_paths(text)]
    interpreter = interpreter_among(paths) or _starts_ranks(text) or _told(text)
    if interpreter:
        yield Fact.known("context.interpreter", interpreter, "text")
    of_root = any(search(_OF_ROOT, path, "/usr/local/lib/python3") for path in text.paths)
    if of_root and any(map(pattern(_RIGHT_BELOW).fullmatch, text.paths)):
        yield Fact.known("context.in_image", True, "text")
    for words, form in (("/root/", _HOME_OF_ROOT), ("root@", _PROMPT_OF_ROOT)):
        if (found := search(form, text.text, words)) is not None:
            yield Fact.known("context.root", True, text.source(found.start()))
            break
    yield from _gfx(text)
    if (board := search(_L4T, text.text, "REVISION")) is not None:
        yield Fact.known("context.l4t", f"{board[1]}.{board[2]}", text.source(board.start()))
    if (image := search(_L4T_IMAGE, text.text, "l4t-")) is not None:
        yield Fact.known("context.l4t_image", image[1], text.source(image.start()))
    if len(services) == 1:
        yield Fact.known("context.service", services[0], "text")
    yield from slurm.asked_for(text.text)
    if (tree := search(_MODULE, text.text, *_IN_MODULES)) is not None:
        name = tree["name"] or tree["spack"]
        yield Fact.known("context.gcc_module", "GCC" if name[:3].isupper() else "gcc", "text")
    model = pattern(_MODEL).search(text.text) if seen["program"].keys() & SERVERS else None
    if model is not None:
        yield Fact.known("context.model", model[1], text.source(model.start()))
    for name, form, tag in (
        ("job", slurm.JOB, "slurm"),
        ("pod", _POD, "kubernetes"),
        ("container", _CONTAINER_ID, "docker"),
    ):
        if tag not in seen["runtime"]:
            continue
        named = {found[found.lastindex or 0] for found in pattern(form).finditer(text.text)}
        if len(named) == 1:
            yield Fact.known(f"context.{name}", named.pop(), "text")
    ranks = len({one.rank for one in transcript.events if one.rank is not None})
    if ranks:
        yield Fact.known("context.ranks", ranks, "text")


def _of_ray(event: Event) -> bool:
    """Ray names another node's worker by pid and address; vLLM writes the pid alone of its processes."""
    return " pid=" in event.stream and (event.stream.startswith("Ray") or event.host is not None)


def _named_paths(text: _Text) -> list[str]:
    """The packages of one installed torch or torchcodec that messages name, for a text without frames."""
    found = {one[0] for one in pattern(_IN_TORCH).finditer(text.text)}
    return [*found] if len(found) == 1 else []


def _starts_ranks(text: _Text) -> str | None:
    """The interpreter that starts the ranks, as the command of a program that does it names it."""
    found = search(_RANKS_BY, text.text, "torch.distributed.")
    return found["python"] if found is not None else None


def _told(text: _Text) -> str | None:
    """The interpreter that a program names as its own at its start, as ComfyUI does."""
    found = {one["python"] for one in pattern(_OWN_PYTHON).finditer(text.text)} if _TOLD in text.text else ()
    return found.pop() if len(found) == 1 else None


def _bundled_paths(text: _Text) -> list[str]:
    """The torch of a program that brings its packages along, where a message names a file of it."""
    found = pattern(_BUNDLED).search(text.text) if "pip_prebundle" in text.text else None
    return [found[0]] if found is not None else []


def _gfx(text: _Text) -> Iterator[Fact]:
    """What a card says of itself, or an error of it; else the only name that is there."""
    if "gfx" not in text.text:
        return
    own = pattern(_OWN_GFX).search(text.text)
    names = {found[0] for found in pattern(r"(?<![A-Za-z0-9])gfx\d{3,4}[a-f]?\b").finditer(text.text)}
    if own is not None:
        yield Fact.known("context.gfx", own[1], text.source(own.start()))
    elif len(names) == 1:
        yield Fact.known("context.gfx", names.pop(), "text")


def _services(transcript: Transcript) -> tuple[str, ...]:
    """The services of docker compose, from the labels of their lines: ``trainer-1  | ``."""
    labels = {event.stream for event in transcript.events if event.rank is None}
    found = map(pattern(_SERVICE).fullmatch, labels)
    return tuple(sorted({one[1] for one in found if one is not None}))


def _settle(seen: dict[str, dict[str, int]], text: _Text) -> None:
    """One system where its paths tell; a device by what only its own programs print."""
    for dimension, tag, words, form in _SPELLINGS:
        if (found := search(form, text.text, *words)) is not None:
            seen[dimension].setdefault(tag, found.start())
    system, device, runtime, python = (seen[name] for name in ("system", "device", "runtime", "python"))
    _settle_system(system, text)
    if "macos" in system:
        at = device.get("apple", system["macos"])
        device.clear()
        device["apple"] = at
    elif {"amd", "intel"} & device.keys() and not _is_nvidia(text):
        device.pop("nvidia", None)
    elif "nvidia" in device:
        device.pop("apple", None)
    if "jupyter" in runtime and "kaggle" not in runtime and "ipython-input-" in text.text:
        at = text.text.find("/usr/local/lib/python3")  # where Colab keeps its packages
        if at < 0 and all(path.startswith(_OF_COLAB) for path in text.paths):
            at = text.text.find("/usr/lib/python3")  # a person's own packages would lie in a home or venv
        if at >= 0 and not {"aarch64", "jetson"} & seen["board"].keys():
            runtime.setdefault("colab", at)
    if not system and (tag := next((tag for tag in _OF_LINUX if tag in runtime), "")):
        system["linux"] = runtime[tag]
    if "apptainer" in runtime:  # whose images may be made of Docker's, with their paths
        for other in ("docker", "compose", "podman"):
            runtime.pop(other, None)
    if "dockerfile" in runtime:  # a container that runs can be started again with other options
        _only(runtime, "dockerfile", runtime["dockerfile"])
    if "libtorch" in seen["program"] and (
        seen["backend"]
        or "libtorch_python" in text.text
        or any(pattern(_PYTHON_FILE).search(path) for path in text.paths)
    ):
        del seen["program"]["libtorch"]
    for notebook in ("colab", "kaggle"):
        if notebook in runtime and _BATCH not in text.text:
            runtime.setdefault("jupyter", runtime[notebook])
    for tag in ("embedded", "uv", "venv", "conda"):  # the nearest to the program says whose packages it has
        if tag in python:
            beside = ("32-bit", "uv-project") if tag == "uv" else ("32-bit",)
            for other in [one for one in python if one != tag and one not in beside]:
                del python[other]
            break


def _is_nvidia(text: _Text) -> bool:
    """Does the text name what only NVIDIA's cards and builds for them have?"""
    rocm = any(text.find(form) >= 0 for form in _OF_ROCM)
    return any(text.find(form) >= 0 for form in (_OWN_NAMES if rocm else (*_OWN_NAMES, *_OF_CUDA)))


def _settle_system(system: dict[str, int], text: _Text) -> None:
    """The system on which the files of the frames lie; where they do not tell, what else the text shows."""
    for words, form in (((":\\", ":/"), _DRIVE), (("\\",), _BACKSLASHES)):
        if (found := search(form, text.text, *words)) is not None:
            system.setdefault("windows", found.start())
    for tag, form in _PLACES.items():
        path = next(filter(pattern(form).match, text.paths), None)
        if path is not None:
            at = text.text.find(path)
            if tag == "linux" and "wsl" in system:
                break
            _only(system, tag, at)
            return
    tag = next((tag for tag in ("wsl", "windows", "macos") if tag in system), "")
    if tag:
        _only(system, tag, system[tag])
        if tag == "wsl":
            system["linux"] = system[tag]
    elif not system:
        path = next((path for path in text.paths if path.startswith("/")), None)
        if path is not None:
            system["linux"] = text.text.find(path)


def _only(tags: dict[str, int], tag: str, at: int) -> None:
    tags.clear()
    tags[tag] = at


def _script(event: Event, transcript: Transcript) -> str:
    """The script whose module level is the outermost own frame of the failure: a name, or a relative path.

    Python before 3.9 shows the path that was typed, later ones an absolute one.
    """
    for one in (event, *transcript.events):
        outermost = next((frame for frame in one.frames if not frame.package), None)
        if outermost is not None and _started(outermost):
            typed = pattern(_AS_TYPED).fullmatch(outermost.file)
            return outermost.file if typed is not None else re.split(r"[\\/]+", outermost.file)[-1]
    failed = (pattern(_FAILED).search(one.text) for one in transcript.events if ".py FAILED" in one.text)
    return next((found[1] for found in failed if found is not None), "")


def _started(frame: Frame) -> bool:
    own = not frame.package and frame.function == "<module>" and not frame.in_cell()
    if own and pattern(_MADE).search(frame.file):
        return False
    return own and bool(pattern(_SCRIPT).fullmatch(frame.file))
