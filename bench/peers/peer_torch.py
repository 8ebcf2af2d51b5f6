"""What the peers' jobs in PyTorch share: how it documents that an update of the parameters is fast."""
import torch

import peer_job


def optimiser(parameters, o):
    """AdamW on fused kernels; matrices decay, vectors do not."""
    groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": o["decay"]},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=o["rate"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"], fused=True)


def update(optimiser, loss, parameters, step, o):
    """One step: gradients of the loss, clipping of their global norm, AdamW at the schedule's rate."""
    for group in optimiser.param_groups:
        group["lr"] = peer_job.learning_rate(o, step)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    if o["clip"] > 0:
        torch.nn.utils.clip_grad_norm_(parameters, o["clip"], foreach=True)
    optimiser.step()
