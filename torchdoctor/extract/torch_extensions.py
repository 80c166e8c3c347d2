"""Packages whose operators are compiled against torch, for one torch, one Python and some GPUs.

The one table of them: what pip calls the package, and the modules that it installs, Python and compiled
ones. A module that is missing is then known to be such a package's, and a build that pip reports as failed,
to be one against torch's headers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchdoctor.model import Frame

# what pip calls it -> its modules, without the part behind the first dot; pip's names have - for _
_PACKAGES: dict[str, str] = {
    # rendering: Gaussian splatting, radiance fields, meshes
    "diff-gaussian-rasterization": "diff_gaussian_rasterization",
    "diff-surfel-rasterization": "diff_surfel_rasterization diff_surfel_rasterizations diff_surfel_anych",
    "diff-gauss": (
        "diff_gauss diff_gauss_pose diff_gaussian_rasterization_c diff_gaussian_rasterization_radegs"
    ),
    "simple-knn": "simple_knn",
    "fused-ssim": "fused_ssim fused_ssim_cuda",
    "gsplat": "gsplat",
    "nvdiffrast": "nvdiffrast _nvdiffrast_c",
    "tinycudann": "tinycudann tinycudann_bindings",
    "pytorch3d": "pytorch3d",
    "kaolin": "kaolin",
    "raymarching": "raymarching _raymarching raymarching_face _raymarching_face",
    "gridencoder": "gridencoder _gridencoder",
    "shencoder": "shencoder _shencoder",
    "freqencoder": "freqencoder _freqencoder",
    "ffmlp": "ffmlp _ffmlp",
    "nerfacc": "nerfacc",
    "cubvh": "cubvh _cubvh",
    "custom-rasterizer": "custom_rasterizer custom_rasterizer_kernel",
    "vox2seq": "vox2seq",
    "o-voxel": "o_voxel",
    "flex-gemm": "flex_gemm",
    "cumesh": "cumesh",
    "torchmcubes": "torchmcubes torchmcubes_module",
    "nvdiffrec-render": "nvdiffrec_render",
    # sequences and attention
    "flash-attn": "flash_attn_2_cuda flash_attn_cuda flash_attn_3 flash_attn_interface",
    "dropout-layer-norm": "dropout_layer_norm fused_dense_lib rotary_emb xentropy_cuda_lib fused_softmax_lib",
    "causal-conv1d": "causal_conv1d causal_conv1d_cuda",
    "mamba-ssm": "mamba_ssm selective_scan_cuda selective_scan_cuda_core selective_scan_cuda_oflex",
    "sageattention": "sageattention sageattn3",
    "spas-sage-attn": "spas_sage_attn",
    "block-sparse-attn": "block_sparse_attn",
    "natten": "natten",
    "xformers": "",
    "transformer-engine": "transformer_engine transformer_engine_torch transformer_engine_extensions",
    "apex": "amp_C fused_layer_norm_cuda fused_weight_gradient_mlp_cuda scaled_masked_softmax_cuda",
    "deep-ep": "deep_ep deep_ep_cpp",
    "deep-gemm": "deep_gemm deep_gemm_cpp",
    "grouped-gemm": "grouped_gemm",
    "sgl-kernel": "sgl_kernel",
    "flashinfer": "flashinfer",
    "curope": "curope",
    # quantised weights
    "auto-gptq": "auto_gptq autogptq_cuda_64 autogptq_cuda_256 exllama_kernels exllamav2_kernels",
    "gptqmodel": "gptqmodel",
    "autoawq-kernels": "awq_ext awq_v2_ext exl_ext exlv2_ext awq_inference_engine",
    "exllamav2": "exllamav2_ext",
    "quant-cuda": "quant_cuda",
    # graphs and sparse tensors
    "torch-scatter": "torch_scatter",
    "torch-sparse": "torch_sparse",
    "torch-cluster": "torch_cluster",
    "torch-spline-conv": "torch_spline_conv",
    "pyg-lib": "pyg_lib",
    "spconv": "spconv cumm",
    "torchsparse": "torchsparse",
    "minkowskiengine": "MinkowskiEngine MinkowskiEngineBackend",
    # points, boxes and deformable operators
    "pointnet2-ops": "pointnet2_ops pointnet2 pointnet2_cuda pointnet2_utils pointops pointops_cuda",
    "knn-cuda": "knn_cuda KNN_CUDA",
    "chamfer": "chamfer chamfer_3D chamfer_2D dist_chamfer dist_chamfer_3D ChamferDistancePytorch",
    "emd": "emd emd_cuda emd_kernel earth_mover_distance",
    "multiscaledeformableattention": "MultiScaleDeformableAttention",
    "dcnv2": "dcn_v2 DCNv2 DCN deform_conv_cuda deform_pool_cuda",
    "dcnv3": "DCNv3 DCNv4 dcnv3 dcnv4",
    "detectron2": "detectron2",
    "mmcv-full": "mmcv_full",
    "bev-pool-ext": "bev_pool_ext bev_pool_v2_ext voxel_layer sparse_conv_ext",
    "iou3d-nms": "iou3d_nms_cuda roiaware_pool3d_cuda roipoint_pool3d_cuda",
    "inplace-abn": "inplace_abn",
    "lietorch": "lietorch lietorch_backends droid_backends lietorch_extras",
    "alt-cuda-corr": "alt_cuda_corr altcorr cuda_corr cuda_ba corr_sampler",
    "correlation-cuda": "correlation_cuda resample2d_cuda channelnorm_cuda spatial_correlation_sampler",
    "warp-rnnt": "warp_rnnt warprnnt_pytorch warpctc_pytorch",
}  # fmt: skip
# what an index of Python packages has under that name; the others come out of a repository
_ON_INDEX = frozenset({
    "flash-attn", "causal-conv1d", "mamba-ssm", "xformers", "natten", "sageattention", "sgl-kernel",
    "auto-gptq", "gptqmodel", "exllamav2", "gsplat", "nerfacc", "inplace-abn", "mmcv-full", "torch-scatter",
    "torch-sparse", "torch-cluster", "torch-spline-conv", "mmcv", "vllm", "bitsandbytes", "torchcodec",
    "fbgemm-gpu", "torchao", "dgl",
})  # fmt: skip
# where the sources of some others are: those of which no forks go by the same name
_REPOSITORIES = {
    "torchmcubes": "tatsy/torchmcubes",
    "pytorch3d": "facebookresearch/pytorch3d",
    "detectron2": "facebookresearch/detectron2",
    "nvdiffrast": "NVlabs/nvdiffrast",
    "tinycudann": "NVlabs/tiny-cuda-nn/#subdirectory=bindings/torch",
    "fused-ssim": "rahul-goel/fused-ssim",
    "cubvh": "ashawkey/cubvh",
    "lietorch": "princeton-vl/lietorch",
}
# no build for Windows exists of these; pip installs the Python half of some there all the same
_NOT_FOR_WINDOWS = {
    "vllm": "vllm", "sglang": "sglang", "sgl_kernel": "sgl-kernel", "flashinfer": "flashinfer-python",
    "deep_ep": "deep-ep", "deep_gemm": "deep-gemm", "transformer_engine": "transformer-engine",
}  # fmt: skip
# setup.py of these downloads the wheel of the release, unless this variable is set
_FORCED = {
    "flash-attn": "FLASH_ATTENTION_FORCE_BUILD=TRUE",
    "causal-conv1d": "CAUSAL_CONV1D_FORCE_BUILD=TRUE",
    "mamba-ssm": "MAMBA_FORCE_BUILD=TRUE",
}
# module -> the name by which pip knows it, where they differ by more than a dash
_OF_PIP = {
    "mii": "deepspeed-mii", "sklearn": "scikit-learn", "cv2": "opencv-python", "skimage": "scikit-image",
    "yaml": "pyyaml", "awq": "autoawq", "swift": "ms-swift", "google": "protobuf",
    "hydra": "hydra-core", "open_clip": "open_clip_torch", "PIL": "pillow", "past": "future",
    "llama_cpp": "llama-cpp-python",
}  # fmt: skip
_OF_MODULE = {module: package for package, modules in _PACKAGES.items() for module in modules.split()}


def of_module(name: str) -> str | None:
    """The package that a module belongs to: ``pytorch3d.renderer`` and ``pytorch3d`` to ``pytorch3d``."""
    return _OF_MODULE.get(name.partition(".")[0])


def is_half(name: str, frames: Sequence[Frame]) -> bool | None:
    """Does lltm.py, or a file in a folder lltm, ask for lltm_cpp, and for no class of Python's in it?"""
    last = next((one for one in reversed(frames) if one.package != "python"), None)
    if last is None:
        return None
    folders = last.file.removesuffix(".py").replace("\\", "/").split("/")
    takes_class = re.search(rf"from {re.escape(name)} import [^#]*\b[A-Z]\w*[a-z]", last.code)
    return name.rpartition("_")[0] in folders and takes_class is None


def pip_name(module: str) -> str:
    """What pip installs for a module: ``scikit-learn`` for ``sklearn.metrics``."""
    top = module.partition(".")[0]
    return _OF_PIP.get(top, top.replace("_", "-"))


def is_package(name: str) -> bool:
    """Is it one of these, by the name that pip prints? ``mmcv_full`` is ``mmcv-full``."""
    return normal(name) in _PACKAGES


def normal(name: str) -> str:
    """The name of a package as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def not_for_windows(name: str) -> str | None:
    """The package of a module that runs on Windows only in WSL or in a container; None for any other."""
    return _NOT_FOR_WINDOWS.get(name.partition(".")[0])


def on_index(name: str) -> str | None:
    """What pip installs for a module, a folder of site-packages or a package; None where no index has it."""
    bare = name.partition(".")[0]
    package = normal(of_module(bare) or bare)
    return package if package in _ON_INDEX else None


def repository(name: str) -> str:
    """What pip installs a module's package from, where its sources are in a repository; "" for all others."""
    bare = name.partition(".")[0]
    found = _REPOSITORIES.get(normal(of_module(bare) or bare))
    return f"git+https://github.com/{found}" if found else ""


def forced_build(package: str) -> str:
    """The setting by which setup.py compiles and does not download a wheel; "" where it needs none."""
    return _FORCED.get(package, "")
