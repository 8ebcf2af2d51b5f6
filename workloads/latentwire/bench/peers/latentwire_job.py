#!/usr/bin/env python3
"""A LatentWire job's training step in PyTorch, as fast as PyTorch documents how to do it.

Usage: latentwire_job.py share=FILE receivers=JSON [key=value ...]        keys and defaults: DEFAULTS below

The model of latent_torch.py with all tokens of an answer in one pass, clipping of the global norm, AdamW on fused kernels
with decay of matrices only, warm-up and half a cosine. Parameters, frozen weights and batches are the shared ones; the
batches come again and again, in their order. precision=bf16 is torch.autocast with fp32 parameters; frozen matrices are
then kept in bf16.

Obeys the protocol of bench/peers/README.md.
"""
import itertools
import json
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "bench/peers"))
import peer_job  # noqa: E402

DEFAULTS = {
    "share": "", "threads": 2, "seed": 1, "precision": "fp32", "dropout": 0.0, "counted": "prompts",
    "batch": 64, "slots": 8, "latent_width": 64, "latent_layers": 2, "latent_heads": 4, "scale_weight": 0.05,
    "receivers": "",  # JSON list: name, style, sizes and anchor of each, as bench_latentwire_step tells
    "steps": 800, "warmup": 50, "rate": 2e-3, "minimum_rate": 4e-5,
    "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "decay": 0.01, "clip": 1.0,
    **peer_job.TORCH_DEFAULTS,  # compiled is the loss, and so its gradients
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


class Job(peer_torch.Steps):
    def __init__(self, o):
        shared = peer_job.read_shared(o["share"])
        receivers = {each["name"]: each for each in json.loads(o["receivers"])}
        fields = [shared["units"], shared["lengths"], *(shared[f"answer_{name}"] for name in receivers)]
        self.model = Latents({**o, "bytes": fields[0].shape[2], "receivers": receivers})
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(torch.from_numpy(shared[name].copy()))
        if o["precision"] == "bf16":
            for receiver in self.model.receivers.values():
                for part in receiver.modules():
                    if isinstance(part, torch.nn.Linear):
                        part.to(torch.bfloat16)
        self.model.to(o["device"])
        forward = torch.compile(self.model, **peer_torch.compile_settings(o)) if o["mode"] == "compile" else self.model

        def loss(tokens, lengths, *answers):
            with peer_torch.autocast(o):
                return forward(tokens, lengths, dict(zip(receivers, answers)))

        places = itertools.cycle(range(len(fields[0])))

        def next_batch():
            place = next(places)
            return [each[place].astype("int64") for each in fields]

        trained = [p for p in self.model.parameters() if p.requires_grad]
        super().__init__(o, loss, trained, peer_torch.optimiser(trained, o), next_batch)


def main():
    peer_torch.prepare(OPTIONS)
    job = Job(OPTIONS)
    flags = ["one pass for all tokens", "scaled_dot_product_attention", "fused AdamW", "foreach clipping",
             *peer_torch.flags(OPTIONS)]
    if OPTIONS["precision"] == "bf16":
        flags += ["autocast(bfloat16)", "frozen matrices in bfloat16"]
    if OPTIONS["mode"] == "compile":
        flags.append(f"torch.compile(mode={OPTIONS['compile_mode']}, dynamic=False, fullgraph=True)")
    peer_job.serve(job, {"side": "torch-" + OPTIONS["mode"],
                         "versions": peer_torch.versions(OPTIONS),
                         "flags": flags, "threads": torch.get_num_threads(),
                         "parameters": sum(p.numel() for p in job.model.parameters())},
                   counted=OPTIONS["batch"])


if __name__ == "__main__":
    main()
