#!/usr/bin/env python3
"""A LatentWire job's training step in PyTorch, as fast as PyTorch documents how to do it.

Usage: latentwire_job.py share=FILE receivers=JSON [key=value ...]        keys and defaults: DEFAULTS below

The model of latent_torch.py with all tokens of an answer in one pass, clipping of the global norm, AdamW on fused kernels
with decay of matrices only, warm-up and half a cosine. Parameters, frozen weights and batches are the shared ones; the
batches come again and again, in their order. precision=bf16 is torch.autocast with fp32 parameters; frozen matrices are
then kept in bf16.

Obeys the protocol of bench/peers/README.md.
"""
import json
import os
import pathlib
import platform
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "bench/peers"))
import peer_job  # noqa: E402

DEFAULTS = {
    "share": "", "threads": 2, "seed": 1, "precision": "fp32", "dropout": 0.0, "counted": "prompts",
    "batch": 64, "slots": 8, "latent_width": 64, "latent_layers": 2, "latent_heads": 4, "scale_weight": 0.05,
    "receivers": "",  # JSON list: name, style, sizes and anchor of each, as bench_latentwire_step tells
    "steps": 800, "warmup": 50, "rate": 2e-3, "minimum_rate": 4e-5,
    "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "decay": 0.01, "clip": 1.0,
    "mode": "eager",  # or compile: torch.compile of the loss (and so of its gradients)
}
if len(sys.argv) < 2:
    sys.exit(__doc__)
OPTIONS = peer_job.parse(sys.argv[1:], DEFAULTS, {"precision": ("fp32", "bf16"), "mode": ("eager", "compile")})
if not OPTIONS["share"] or not OPTIONS["receivers"]:
    sys.exit("share=FILE and receivers=JSON are needed: what is trained, and through which models")
os.environ.setdefault("OMP_NUM_THREADS", str(OPTIONS["threads"]))  # read when torch is loaded

import torch  # noqa: E402

import peer_torch  # noqa: E402
from latent_torch import Latents  # noqa: E402


class Job:
    def __init__(self, o):
        self.o = o
        self.step = 0
        shared = peer_job.read_shared(o["share"])
        receivers = {each["name"]: each for each in json.loads(o["receivers"])}
        self.bytes, self.lengths = shared["units"], shared["lengths"]
        self.answers = {name: shared[f"answer_{name}"] for name in receivers}
        self.model = Latents({**o, "bytes": self.bytes.shape[2], "receivers": receivers})
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(torch.from_numpy(shared[name].copy()))
        if o["precision"] == "bf16":
            for receiver in self.model.receivers.values():
                for part in receiver.modules():
                    if isinstance(part, torch.nn.Linear):
                        part.to(torch.bfloat16)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimiser = peer_torch.optimiser(self.parameters, o)
        self.loss = torch.compile(self.model, dynamic=False, fullgraph=True) if o["mode"] == "compile" else self.model

    def train(self):
        o, place = self.o, self.step % len(self.bytes)
        tokens = torch.from_numpy(self.bytes[place].astype("int64"))
        answers = {name: torch.from_numpy(each[place].astype("int64")) for name, each in self.answers.items()}
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=o["precision"] == "bf16"):
            loss = self.loss(tokens, torch.from_numpy(self.lengths[place].copy()), answers)
        peer_torch.update(self.optimiser, loss, self.parameters, self.step, o)
        self.step += 1
        return loss.item()


def main():
    torch.set_num_threads(OPTIONS["threads"])
    torch.set_flush_denormal(True)
    torch.manual_seed(OPTIONS["seed"])
    job = Job(OPTIONS)
    flags = ["one pass for all tokens", "scaled_dot_product_attention", "fused AdamW", "foreach clipping", "flush_denormal"]
    if OPTIONS["precision"] == "bf16":
        flags += ["autocast(bfloat16)", "frozen matrices in bfloat16"]
    if OPTIONS["mode"] == "compile":
        flags.append("torch.compile(dynamic=False, fullgraph=True)")
    peer_job.serve(job, {"side": "torch-" + OPTIONS["mode"],
                         "versions": {"torch": torch.__version__, "python": platform.python_version(),
                                      "cpu_capability": torch.backends.cpu.get_cpu_capability()},
                         "flags": flags, "threads": torch.get_num_threads(),
                         "parameters": sum(p.numel() for p in job.model.parameters())},
                   counted=OPTIONS["batch"])


if __name__ == "__main__":
    main()
