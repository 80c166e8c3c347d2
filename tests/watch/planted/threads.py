import torch

count = torch.get_num_threads()
torch.set_num_threads(count + 3)  # <- threads: * -> *
