#!/usr/bin/env python3
"""The hybrid language model's training step in PyTorch, as fast as PyTorch documents how to do it.

Usage: hybrid_job.py share=FILE [key=value ...]        keys and defaults: DEFAULTS below

The model of hybrid_torch.py, mean cross-entropy, clipping of the global norm, AdamW on fused kernels with decay of
matrices only, warm-up and half a cosine. Parameters, the first batch and the tokens to draw further windows from are the
shared ones. precision=bf16 is torch.autocast with fp32 parameters; sums of decays, exponentials and states stay fp32.

Obeys the protocol of bench/peers/README.md.
"""
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "bench/peers"))
import peer_job  # noqa: E402
import text_job  # noqa: E402

DEFAULTS = {
    "share": "", "threads": 2, "seed": 1, "precision": "fp32", "dropout": 0.0,
    "batch": 8, "context": 256, "layers": 8, "width": 128, "heads": 4, "branch": "finch", "mix_rank": 32,
    "decay_rank": 64, "inner": 256, "mamba_heads": 4, "states": 64, "convolution": 4, "hidden": 512, "vocabulary": 0,
    "steps": 5000, "warmup": 500, "rate": 3e-4, "minimum_rate": 3e-5,
    "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "decay": 0.1, "clip": 1.0,
    **peer_job.TORCH_DEFAULTS,  # compiled is the loss, and so its gradients
    "scope": "step",  # of what is compiled: the whole loss, or each layer by itself, which compiles sooner
    "recurrent": 0,  # 1: token by token
}
CHOICES = {"precision": ("fp32", "bf16"), "mode": ("eager", "compile"), "scope": ("step", "layers"),
           "branch": ("finch", "static")}
if len(sys.argv) < 2:
    sys.exit(__doc__)
OPTIONS = peer_job.parse(sys.argv[1:], DEFAULTS, CHOICES)
if not OPTIONS["share"]:
    sys.exit("share=FILE is needed: initial parameters and a batch")
os.environ.setdefault("OMP_NUM_THREADS", str(OPTIONS["threads"]))  # read when torch is loaded

import torch  # noqa: E402

import peer_torch  # noqa: E402
from hybrid_torch import Hybrid  # noqa: E402


class Job(peer_torch.Steps):
    def __init__(self, o):
        shared = peer_job.read_shared(o["share"])
        self.data = text_job.Data("-", shared, o)
        self.model = Hybrid(self.data.vocabulary, o)
        self.model.fill(shared)
        self.model.to(o["device"])
        parameters = list(self.model.parameters())
        forward = self.model
        if o["mode"] == "compile" and o["scope"] == "layers":
            for layer in self.model.layers:
                layer.compile(**peer_torch.compile_settings(o))
        elif o["mode"] == "compile":
            forward = torch.compile(self.model, **peer_torch.compile_settings(o))

        def loss(inputs, targets):
            with peer_torch.autocast(o):
                return forward(inputs, targets)

        super().__init__(o, loss, parameters, peer_torch.optimiser(parameters, o), self.data.next)


def main():
    peer_torch.prepare(OPTIONS)
    job = Job(OPTIONS)
    flags = ["token by token" if OPTIONS["recurrent"] else "chunks of 64", "fused AdamW", "foreach clipping",
             *peer_torch.flags(OPTIONS)]
    if OPTIONS["precision"] == "bf16":
        flags.append("autocast(bfloat16)")
    if OPTIONS["mode"] == "compile":
        flags.append(f"torch.compile({OPTIONS['scope']}, mode={OPTIONS['compile_mode']}, dynamic=False, fullgraph=True)")
    side = "torch-" + ("recurrent-" if OPTIONS["recurrent"] else "") + OPTIONS["mode"]
    peer_job.serve(job, {"side": side,
                         "versions": peer_torch.versions(OPTIONS),
                         "flags": flags, "threads": torch.get_num_threads(),
                         "parameters": sum(p.numel() for p in job.parameters)},
                   counted=OPTIONS["batch"] * OPTIONS["context"])


if __name__ == "__main__":
    main()
