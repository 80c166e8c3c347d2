import os

import torch

if torch.cuda.is_available():
    print("a GPU")
os.environ["CUDA_VISIBLE_DEVICES"] = "1"  # <- env.CUDA_VISIBLE_DEVICES: not set -> 1, visible-devices-late: not set -> 1
