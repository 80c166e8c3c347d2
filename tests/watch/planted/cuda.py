import torch

torch.cuda._initialized = True  # <- cuda-initialized: False -> True
