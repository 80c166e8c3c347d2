import torch

torch.set_default_dtype(  # <- default-dtype: torch.float32 -> torch.float64
    torch.float64,
)
torch.set_default_dtype(torch.float32)  # <- default-dtype: torch.float64 -> torch.float32
