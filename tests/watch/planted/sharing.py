import torch.multiprocessing

torch.multiprocessing.set_sharing_strategy("file_system")  # <- sharing-strategy: file_descriptor -> file_system
