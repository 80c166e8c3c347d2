"""Advice on a compiled package names what the log names: the package, the file, the release, the folder."""

# ruff: noqa: E501 - a line of a log is one line

from __future__ import annotations

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.engine.packages import named
from torchdoctor.extract import torch_extensions
from torchdoctor.intake import read_text
from torchdoctor.model import Diagnosis, Fact

SITE = "/srv/env/lib/python3.10/site-packages"
GLIBC = "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by {})\n"
SYMBOL = "OSError: {}: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSs\n"
NV_BUILD = "torch                     2.5.0a0+872d972e41.nv24.8\n"
NVJITLINK = (
    "ImportError: /srv/kit/lib/python3.11/site-packages/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: "
    "undefined symbol: __nvJitLinkComplete_12_6, version libnvJitLink.so.12\n"
)
JETSON = """\
/srv/src/bitsandbytes-0.42.0/bitsandbytes/cextension.py:34: UserWarning: The installed version of bitsandbytes was compiled without GPU support. 8-bit optimizers are unavailable.
  warn("The installed version of bitsandbytes was compiled without GPU support. "
/usr/local/cuda-11.4/targets/aarch64-linux/lib/libcudart.so
"""
SPARSE = f"""\
Traceback (most recent call last):
  File "/srv/gnn/fit.py", line 3, in <module>
    import torch_sparse
  File "{SITE}/torch_sparse/__init__.py", line 18, in <module>
    torch.ops.load_library(spec.origin)
  File "{SITE}/torch/_ops.py", line 643, in load_library
    ctypes.CDLL(path)
OSError: libtorch_hip.so: cannot open shared object file: No such file or directory
"""
UNPACKED = f"""\
Collecting horovod
  /tmp/pip-install-k2v1qz3a/horovod_0f9b7c6d5e4f3a2b1c0d9e8f7a6b5c4d/horovod/torch/mpi_ops.cc:88:24: error: 'class at::Tensor' has no member named 'is_old'
  g++ -DTORCH_EXTENSION_NAME=mpi_lib -I{SITE}/torch/include -c mpi_ops.cc
  error: command 'gcc' failed with exit status 1
  ERROR: Failed building wheel for horovod
"""
CHECK_GE = f"""\
      clang -Icsrc -I{SITE}/torch/include -c csrc/cpu/sample.cpp
      csrc/cpu/utils.h:31:3: error: use of undeclared identifier 'CHECK_GE'
      error: command '/usr/bin/clang' failed with exit code 1
  ERROR: Failed building wheel for torch-cluster
"""
AT_CHECK = f"""\
building 'chamfer_cuda' extension
{SITE}/torch/utils/cpp_extension.py:813: UserWarning: The detected CUDA version (11.1) has a minor version mismatch
chamfer/cuda/chamfer.cu(92): error: identifier "AT_CHECK" is undefined
"""
STD = """\
building 'grid_cuda' extension
D:/py/Lib/site-packages/torch/include\\torch/csrc/dynamo/compiled_autograd.h(1108): error C2872: 'std': ambiguous symbol
"""
NO_DGL = f"""\
Traceback (most recent call last):
  File "/srv/g.py", line 1, in <module>
    import dgl
  File "{SITE}/dgl/graphbolt/__init__.py", line 26, in load_graphbolt
    raise FileNotFoundError(
FileNotFoundError: Cannot find DGL C++ graphbolt library at {SITE}/dgl/graphbolt/libgraphbolt_pytorch_2.5.1.so
"""
NOT_HIPIFIED = f"""\
In file included from /srv/pkg/csrc/fused/adam_kernel.hip:9:
In file included from /srv/pkg/csrc/tensor_list.cuh:3:
{SITE}/torch/include/ATen/cuda/CUDAContext.h:5:10: fatal error: 'cuda_runtime_api.h' file not found
1 error generated when compiling for gfx906.
error: command '/opt/rocm/bin/hipcc' failed with exit code 1
"""
DOCKERFILE = """\
#14 2.031   File "/opt/conda/lib/python3.{}/site-packages/torch/utils/cpp_extension.py", line 1592, in _get_cuda_arch_flags
#14 2.031     arch_list[-1] += '+PTX'
#14 2.031 IndexError: list index out of range
------
Dockerfile:19
ERROR: failed to solve: process "/bin/sh -c python setup.py develop" did not complete successfully: exit code: 1
"""
# no JetPack is named: Python 3.8 is on boards with images of others, too
ON_A_BOARD = """\
Traceback (most recent call last):
  File "listen.py", line 3, in <module>
    import torchaudio
  File "/home/jetson/.local/lib/python3.8/site-packages/torchaudio/_extension.py", line 103, in _init_extension
    _load_lib("libtorchaudio")
  File "/usr/local/lib/python3.8/dist-packages/torch/_ops.py", line 573, in load_library
    ctypes.CDLL(path)
OSError: /home/jetson/.local/lib/python3.8/site-packages/torchaudio/lib/libtorchaudio.so: undefined symbol: _ZNK5torch8autograd4Node4nameEv
"""
IN_COMPOSE = """\
trainer-1  | Traceback (most recent call last):
trainer-1  |   File "/app/fit.py", line 9, in <module>
trainer-1  |     model.cuda()
trainer-1  | RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx
trainer-1 exited with code 1
"""
ARCH = """\
CMake Error at /srv/libtorch/share/cmake/Caffe2/Modules_CUDA_fix/upstream/FindCUDA/select_compute_arch.cmake:227 (message):
  Unknown CUDA Architecture Name {} in CUDA_SELECT_NVCC_ARCH_FLAGS
"""


def head(text: str, rules: RuleSet) -> Diagnosis:
    return diagnose(read_text(text), FactBook(None), rules).diagnoses[0]


CLONED = """\
Collecting flash-attn
  Cloning https://github.com/acme/flash-attention.git (to revision v2.1) to /tmp/pip-install-6c9ieb6z/flash-attn_0288baf0920f489196e54af9bf29d5b7
RuntimeError: The detected CUDA version (12.9) mismatches the version that was used to compile PyTorch (11.8). Please make sure to use the same CUDA versions.
  ERROR: Failed building wheel for flash-attn
"""


@pytest.mark.parametrize(
    ("text", "start", "command"),
    [
        (CLONED, "Build with the toolkit 11.8", "git+https://github.com/acme/flash-attention.git@v2.1"),
        (GLIBC.format(f"{SITE}/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so"), "Build mamba-ssm", "MAMBA_FORCE_BUILD=TRUE pip install -v --no-cache-dir --no-binary mamba-ssm"),
        (SYMBOL.format(f"{SITE}/torch_cluster/_version_cuda.so"), "Install the wheel that PyG", "torch-cluster -f https://data.pyg.org/whl/torch-$("),
        ("torch==2.9.1+cu128\n" + SYMBOL.format(f"{SITE}/torch_cluster/_version_cuda.so"), "Install the wheel that PyG", "torch-cluster -f https://data.pyg.org/whl/torch-2.9.0+cu128.html"),
        ("torch==2.9.1+cu121\n" + SYMBOL.format(f"{SITE}/torch_cluster/_version_cuda.so"), "Compile torch-cluster", "--no-binary torch-cluster"),
        (NO_DGL, "Install DGL together", "torch-2.4/cu121/repo.html"),
        (NO_DGL.replace("/srv/", "/Users/srv/").replace("3.10", "3.12"), "Build DGL", ""),
        (SYMBOL.format(f"{SITE}/torch_cluster/_version_cuda.so") + NV_BUILD, "Compile it here", "--no-binary torch-cluster"),
        (JETSON, "Build bitsandbytes", "/usr/local/cuda-11.4/bin"),
        (SPARSE, "Ask the torch", "torch.version.hip"),
        (SYMBOL.format(f"{SITE}/torchmcubes_module.cpython-310-x86_64-linux-gnu.so"), "Build torchmcubes from", " git+https://github.com/tatsy/torchmcubes"),
        (SYMBOL.format(f"{SITE}/grid_ops.cpython-310-x86_64-linux-gnu.so"), "Build grid_ops against", "--no-deps ."),
        (ON_A_BOARD, "Keep torch, and build torchaudio", "pytorch/audio@release/$("),
        (IN_COMPOSE, "Give service trainer the GPU", ""),
        (IN_COMPOSE.replace("trainer-1 ", "api-1 ", 1), "Give the service the GPU", ""),
        (ARCH.format("12.0"), "Build with torch 2.7", "9.0+PTX"),
        (ARCH.format("9.0a"), "Name this card's number", "compute_cap"),
        (UNPACKED, "Install a release of horovod", "--upgrade horovod"),
        (CHECK_GE, "Install a release of torch-cluster", "--upgrade torch-cluster"),
        (AT_CHECK, "Replace AT_CHECK", "AT_CHECK . |"),
        (STD, "Add -DUSE_CUDA", ""),
        (NOT_HIPIFIED, "Build the package's port", ""),
        (DOCKERFILE.format(7), "Name your card's", '="7.0 7.5 8.0+PTX"'),
        (DOCKERFILE.format(11), "Name your card's", '="7.5 8.0 8.6+PTX"'),
    ],
)  # fmt: skip
def test_the_first_action_holds_what_the_log_names(
    text: str, start: str, command: str, rules: RuleSet
) -> None:
    fix = head(text, rules).fixes[0]
    assert fix.do.startswith(start)
    assert command in (fix.run or "")
    assert "PACKAGE" not in (fix.run or "")


def test_the_library_is_of_the_release_in_the_symbol(rules: RuleSet) -> None:
    runs = [fix.run or "" for fix in head(NVJITLINK, rules).fixes]
    assert any("nvidia-nvjitlink-cu12==12.6.*" in run for run in runs)
    assert not any("whl/cu" in run for run in runs)


def test_a_kernel_of_a_package_is_built_again_by_its_name(rules: RuleSet) -> None:
    text = f"""Traceback (most recent call last):
  File "/srv/gnn/fit.py", line 9, in <module>
    y = flash_attn_func(q, k, v)
  File "{SITE}/flash_attn/flash_attn_interface.py", line 88, in _flash_attn_forward
    out = flash_attn_gpu.fwd(
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""
    runs = [fix.run or "" for fix in head(text, rules).fixes]
    assert any("FLASH_ATTENTION_FORCE_BUILD=TRUE" in run for run in runs)


BOARD = """tegra$ python -m bitsandbytes
/data/venv/lib/python3.10/site-packages/bitsandbytes/cextension.py:34: UserWarning: The installed version of bitsandbytes was compiled without GPU support. 8-bit optimizers, 8-bit multiplication, and GPU quantization are unavailable.
  warn("The installed version of bitsandbytes was compiled without GPU support. "
/data/src/bitsandbytes/build/lib/bitsandbytes/libbitsandbytes_cuda122.so
Linux-5.15.148-tegra-aarch64-with-glibc2.35
"""


def test_a_clone_that_the_log_shows_is_not_made_again(rules: RuleSet) -> None:
    runs = [fix.run or "" for fix in head(BOARD, rules).fixes]
    assert any(run.startswith("cd /data/src/bitsandbytes && ") for run in runs)
    compiled_elsewhere = BOARD.replace("/build/lib/bitsandbytes/libbitsandbytes_cuda122.so", "/csrc/ops.cu")
    runs = [fix.run or "" for fix in head(compiled_elsewhere, rules).fixes]
    assert any("git clone " in run for run in runs)


def test_torch_without_a_gpu_comes_before_bitsandbytes(rules: RuleSet) -> None:
    blind = BOARD + "COMPILED_WITH_CUDA = False\nCOMPUTE_CAPABILITIES_PER_GPU = []\n"
    assert "sees no GPU" in head(blind, rules).fixes[0].do
    desktop = blind.replace("tegra", "generic").replace("aarch64", "x86_64")
    assert head(desktop, rules).fixes[0].do.startswith("Make torch see the GPU")


def test_no_installed_header_is_to_be_edited(rules: RuleSet) -> None:
    for text in (STD, NOT_HIPIFIED):
        assert not [
            fix for fix in head(text, rules).fixes if fix.do.startswith(("Correct ", "Take the include"))
        ]


def test_the_release_that_somebody_unpacked_is_a_package_s_code(rules: RuleSet) -> None:
    frame = head(JETSON, rules).frame
    assert frame is None or frame.package == "bitsandbytes"


def test_a_folder_is_the_reader_s_own_unless_pip_unpacked_it() -> None:
    command = "CC=gcc-9 pip install -v --no-build-isolation ."
    editable = "pip install -v --no-build-isolation -e ."

    def of_pip(name: str) -> Fact:
        return Fact.known(name, "horovod") if name == "build.unpacked" else Fact.absent(name)

    assert named(command, Fact.absent) == command
    assert named(command, of_pip) == "CC=gcc-9 pip install -v --no-build-isolation --no-cache-dir horovod"
    assert named(editable, of_pip) == editable


def test_a_name_that_no_index_has_stays_the_reader_s() -> None:
    assert torch_extensions.on_index("diff_gaussian_rasterization") is None
    assert torch_extensions.on_index("flash_attn_2_cuda") == "flash-attn"
