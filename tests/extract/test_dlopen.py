"""What the dynamic loader's messages say, on every system and in every language."""

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.extract import dlopen, linked_names, of_event
from torchdoctor.model import Event, EventKind, Fact, FactValue, Frame, State, Transcript


def extract(text: str, *frames: str) -> dict[str, Fact]:
    event = Event(
        0,
        EventKind.EXCEPTION,
        text,
        "job.log",
        9,
        9,
        type="ImportError",
        frames=tuple(Frame(file, 1, "<module>") for file in frames),
    )
    found = list(of_event("dlopen", event, Transcript(("job.log",), (event,))))
    assert {fact.name for fact in found} <= set(dlopen.FACTS)
    assert all(fact.source == "text:job.log:9" for fact in found)
    return {fact.name.removeprefix("dlopen."): fact for fact in found}


def values(text: str, *frames: str) -> dict[str, FactValue]:
    return {name: fact.value for name, fact in extract(text, *frames).items() if fact.state is State.KNOWN}


@pytest.mark.parametrize(
    ("symbol", "family"),
    [
        ("_ZN2at5emptyEN3c108ArrayRefIlEE", "torch-abi"),
        ("_ZNK3c1010TensorImpl36is_contiguous_nondefault_policy_implENS_12MemoryFormatE", "torch-abi"),
        ("_ZNK5torch8autograd4Node4nameB5cxx11Ev", "torch-abi"),
        ("_ZN5torch3jit17parseSchemaOrNameERKSs", "torch-abi"),
        ("_ZTIN3c1021AutogradMetaInterfaceE", "torch-abi"),
        ("__ZN3c1017RegisterOperatorsD1Ev", "torch-abi"),
        ("_Z16THPVariable_WrapN2at6TensorE", "torch-abi"),
        ("_torch_library_impl", "torch-abi"),
        ("aoti_torch_new_tensor_handle", "torch-abi"),
        ("__nvJitLinkComplete_12_4", "nvjitlink"),
        ("__nvJitLinkCreate_12_8", "nvjitlink"),
        ("cublasLtGetStatusString", "cublas"),
        ("cuptiActivityEnableDriverApi", "cuda-toolkit"),
        ("cudaGetDriverEntryPointByVersion", "cuda-toolkit"),
        ("cudnnGetLibConfig", "cudnn"),
        ("_ZN5cudnn3ops18GetInternalStreamsEP12cudnnContextiPP11CUstream_st", "cudnn"),
        ("ncclCommRegister", "nccl"),
        ("cuDevicePrimaryCtxRelease_v2", "cuda-driver"),
        ("cuTensorMapEncodeTiled", "cuda-driver"),
        ("nvmlDeviceGetNvLinkRemoteDeviceType", "nvml"),
        ("iJIT_NotifyEvent", "mkl"),
        ("mkl_sparse_optimize_bsr_trsm_i8", "mkl"),
        ("GOMP_parallel", "openmp"),
        ("PyUnicode_AsUTF8", "python"),
        ("_PyThreadState_UncheckedGet", "python"),
        ("hipEventCreateWithFlags", "rocm"),
        ("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv", "cxx-runtime"),
        ("_ZdlPvm", "other"),
        ("curl_easy_init", "other"),
    ],
)
def test_symbols(symbol: str, family: str) -> None:
    found = values(f"/opt/v/lib/python3.10/site-packages/pkg/_C.so: undefined symbol: {symbol}")
    assert (found["kind"], found["symbol"], found["symbol_family"]) == ("undefined-symbol", symbol, family)
    assert found["loader_package"] == "pkg"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("libcuda.so.1", "cuda-driver"),
        ("libnvidia-ml.so.1", "nvml"),
        ("libcudart.so.12", "cuda-toolkit"),
        ("libcusparseLt.so.0", "cuda-toolkit"),
        ("cublasLt64_12.dll", "cuda-toolkit"),
        ("libcudnn_ops.so.9", "cudnn"),
        ("cudnn_cnn_infer64_8.dll", "cudnn"),
        ("libnccl.so.2", "nccl"),
        ("libtorch_cuda_cu.so", "torch"),
        ("libc10.so", "torch"),
        ("fbgemm.dll", "torch"),
        ("libtorch_hip.so", "torch-rocm"),
        ("libamdhip64.so.6", "torch-rocm"),
        ("libtorchaudio.so", "torchaudio"),
        ("libmkl_intel_lp64.so.2", "mkl"),
        ("libiomp5.so", "openmp"),
        ("libpython3.10.so.1.0", "python"),
        ("libstdc++.so.6", "cxx-runtime"),
        ("libm.so.6", "libc"),
        ("libGL.so.1", "other"),
        ("libcurl.so.4", "other"),
    ],
)
def test_libraries(name: str, family: str) -> None:
    assert linked_names.library_family(name) == family


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("/v/lib/python3.8/site-packages/mmcv/_ext.cpython-38-x86_64-linux-gnu.so", "mmcv"),
        (
            "/v/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so",
            "flash_attn_2_cuda",
        ),
        ("/usr/lib/python3/dist-packages/torchaudio/lib/libtorchaudio.so", "torchaudio"),
        ("C:\\v\\Lib\\site-packages\\torch\\lib\\c10.dll", "torch"),
        ("/home/user/vllm/vllm/_C.abi3.so", "vllm"),
        ("/home/user/.cache/torch_extensions/py39/optim_cuda/optim_cuda.so", "optim_cuda"),
        ("/v/lib/python3.9/site-packages/numpy.libs/libopenblas.so", "numpy"),
        ("", ""),
    ],
)
def test_packages(path: str, package: str) -> None:
    assert linked_names.loader_package(path) == package


def test_versioned_symbol_names_both_libraries() -> None:
    found = values(
        "/srv/v/lib/python3.8/site-packages/torch/lib/../../nvidia/cublas/lib/libcublas.so.11: "
        "undefined symbol: cublasLtGetStatusString, version libcublasLt.so.11"
    )
    assert found["library"] == found["version"] == "libcublasLt.so.11"
    assert found["loader_package"] == "torch"
    assert found["library_major"] == 11


def test_relocation_without_its_prefix() -> None:
    found = values(
        "/opt/py/nvidia/cublas/lib/libcublas.so.11: symbol cublasLtGetStatusString version libcublasLt.so.11 "
        "not defined in file libcublasLt.so.11 with link time reference"
    )
    assert (found["kind"], found["symbol_family"]) == ("undefined-symbol", "cublas")
    assert found["loader_file"] == "/opt/py/nvidia/cublas/lib/libcublas.so.11"


def test_relocation_error() -> None:
    found = values(
        "python: relocation error: /usr/lib/libcublas.so.12: symbol cublasLtHSHMatmulAlgoInit, version "
        "libcublasLt.so.12 not defined in file libcublasLt.so.12 with link time reference"
    )
    assert (found["kind"], found["symbol_family"], found["library_family"]) == (
        "undefined-symbol",
        "cublas",
        "cuda-toolkit",
    )


@pytest.mark.parametrize(
    ("text", "library"),
    [
        ("libcudnn.so.9: cannot open shared object file: No such file or directory", "libcudnn.so.9"),
        ("/opt/x/libcudart.so.11.0: cannot open shared object file: Permission denied", "libcudart.so.11.0"),
        ("libcudart.so.12: 无法打开共享对象文件: 没有那个文件或目录", "libcudart.so.12"),
        (
            "libcublas.so.12: Kann die Shared-Object-Datei nicht öffnen: Datei oder Verzeichnis nicht "
            "gefunden",
            "libcublas.so.12",
        ),
        (
            "libnccl.so.2: ne peut ouvrir le fichier d'objet partagé: Aucun fichier ou répertoire de ce type",
            "libnccl.so.2",
        ),
        (
            "WARNING Failed to import from vllm._C with ImportError('libcudart.so.13: cannot open "
            "shared object file: No such file or directory')",
            "libcudart.so.13",
        ),
        (
            "Could not load library libcudnn_cnn_infer.so.8. Error: libcudnn_cnn_infer.so.8: cannot "
            "open shared object file",
            "libcudnn_cnn_infer.so.8",
        ),
        (
            "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9}",
            "libcudnn_ops.so.9.1.0",
        ),
        (
            "Could not locate cudnn_ops64_9.dll. Please make sure it is in your library path!",
            "cudnn_ops64_9.dll",
        ),
        ("libcublas.so.*[0-9] not found in the system path ['/opt/app']", "libcublas.so"),
        (
            "dlopen(/v/_C.so, 0x0006): Library not loaded: @rpath/libc10.dylib\n  Referenced from: /v/_C.so",
            "libc10.dylib",
        ),
    ],
)
def test_missing_library(text: str, library: str) -> None:
    found = values(text)
    assert (found["kind"], found["library"]) == ("missing-library", library)


@pytest.mark.parametrize(
    ("text", "version", "family", "library"),
    [
        (
            "/c/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /c/optim_cuda.so)",
            "GLIBCXX_3.4.29",
            "glibcxx",
            "libstdc++.so.6",
        ),
        (
            "/lib64/libm.so.6: version `GLIBC_2.27' not found (required by /c/torch/lib/../libcurand.so.10)",
            "GLIBC_2.27",
            "glibc",
            "libm.so.6",
        ),
        (
            "/lib/libstdc++.so.6: Version »CXXABI_1.3.13« nicht gefunden (benötigt von /c/x.so)",
            "CXXABI_1.3.13",
            "cxxabi",
            "libstdc++.so.6",
        ),
        ("/lib/libc.so.6: version `GLIBC_2.34' 未找到 (被 /c/x.so 需要)", "GLIBC_2.34", "glibc", "libc.so.6"),
    ],
)
def test_missing_version(text: str, version: str, family: str, library: str) -> None:
    found = values(text)
    assert found["kind"] == "missing-version"
    assert (found["version"], found["version_family"], found["library"]) == (version, family, library)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (
            "[WinError 126] The specified module could not be found. Error loading "
            '"C:\\v\\torch\\lib\\fbgemm.dll" or one of its dependencies.',
            126,
        ),
        (
            "[WinError 1114] 动态链接库(DLL)初始化例程失败。 Error loading "
            '"C:\\v\\torch\\lib\\c10.dll" or one of its dependencies.',
            1114,
        ),
        ("DLL load failed while importing _C: The specified procedure could not be found.", 127),
        ("DLL load failed while importing _C: 找不到指定的程序。", 127),
        ("DLL load failed while importing _C: Le module spécifié est introuvable.", 126),
        ("DLL load failed while importing _C: Не найдена указанная процедура.", 127),
        ("DLL load failed: A dynamic link library (DLL) initialization routine failed.", 1114),
        (
            "Could not find module 'C:\\v\\torch\\lib\\caffe2_detectron_ops.dll' (or one of its "
            "dependencies). Try using the full path",
            126,
        ),
    ],
)
def test_windows(text: str, number: int) -> None:
    found = values(text)
    assert (found["kind"], found["win_error"]) == ("dll-load-failed", number)


def test_mac_symbol_names_the_library_that_lacks_it() -> None:
    found = values(
        "dlopen(/Users/u/v/lib/python3.11/site-packages/torchaudio/lib/libtorchaudio.abi3.so, 0x0006): "
        "Symbol not "
        "found: _torch_library_impl\n  Referenced from: <4C4C-A1A1> /Users/u/v/libtorchaudio.abi3.so\n"
        "  Expected in:     <4C4C-A1B2> /Users/u/v/lib/python3.11/site-packages/torch/lib/libtorch_cpu.dylib"
    )
    assert (found["symbol"], found["symbol_family"]) == ("_torch_library_impl", "torch-abi")
    assert (found["library"], found["library_family"]) == ("libtorch_cpu.dylib", "torch")
    assert found["loader_package"] == "torchaudio"


def test_who_wanted_a_missing_library_comes_from_the_frames() -> None:
    found = values(
        "libtorch_cuda_cpp.so: cannot open shared object file: No such file or directory",
        "/home/user/run.py",
        "/v/lib/python3.9/site-packages/torchaudio/__init__.py",
        "/usr/lib/python3.9/importlib/__init__.py",
    )
    assert found["loader_package"] == "torchaudio"


def test_what_was_looked_for_and_is_not_there_is_absent() -> None:
    found = extract("libcudart.so.12: cannot open shared object file: No such file or directory")
    assert found["symbol"].state is State.ABSENT
    assert found["version"].state is State.ABSENT


@pytest.mark.parametrize(
    "text",
    [
        "No module named 'torch'",
        "cannot import name 'nms_cuda' from 'lib.nms'",
        "list index out of range",
        "loaded libfoo.so in 0.2 s",
        "libpng warning: iCCP: known incorrect sRGB profile in a.so",
        "x" * 5000 + ".so: " + "y" * 5000,
    ],
)
def test_other_texts_give_nothing(text: str) -> None:
    assert extract(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        "x.so" * 5000,
        "lib" + "a" * 20000 + ".so: b: c",
        "GLIBC_1." * 3000 + "(",
        "/" * 20000 + ".so: undefined symbol: x",
        "a" * 20000 + ": cannot open shared object file",
        "dlopen(" * 4000 + "incompatible architecture",
        "undefined symbol: " * 3000,
    ],
)
def test_hostile_texts_cost_little(text: str) -> None:
    bounded(0.5, lambda: extract(text))
