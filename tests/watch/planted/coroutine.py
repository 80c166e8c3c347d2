import asyncio

import torch


async def prepare():
    await asyncio.sleep(0)
    torch.set_grad_enabled(False)  # <- grad-mode: True -> False


asyncio.new_event_loop().run_until_complete(prepare())
