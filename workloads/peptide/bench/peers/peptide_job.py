#!/usr/bin/env python3
"""The peptide model's training step in PyTorch, as fast as PyTorch documents how to do it.

Usage: peptide_job.py share=FILE [key=value ...]        keys and defaults: DEFAULTS below

The model of peptide_torch.py and its losses; clipping of the global norm, AdamW on fused kernels with decay of all
tensors that have gradients, an exponential average of the parameters, cosine schedule. Shapes are those of the shared
parameters and batch. Every step trains on the shared batch, whose rows are dealt out anew: making spectra in Python
would cost more than the step, and is not what is compared. precision=bf16 is torch.autocast of the model, with fp32
parameters; losses and masses stay fp32.

Obeys the protocol of bench/peers/README.md: a JSON line when ready, then for each line `N` read from standard input
N training steps and one JSON line about them; ends at the end of input. What is counted is spectra.
"""
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "bench/peers"))
import peer_job  # noqa: E402

DEFAULTS = {
    "share": "", "threads": 2, "seed": 1, "precision": "fp32", "dropout": 0.0,
    # The work. batch, peaks and width are for the record: they are those of the shared tensors.
    "counted": "spectra", "batch": 0, "peaks": 0, "width": 0,
    "heads": 4, "supervision_steps": 8, "latent_steps": 4, "max_mass": 2000.0, "precursor_mz": 0, "start_and_end": 1,
    "iteration_weights": "linear", "label_smoothing": 0.0, "ce_weight": 1.0,
    "spectrum": "window_huber", "coverage_sigma": 0.2, "mask_padding": 1, "precursor": "smooth_l1",
    "steps": 50000, "warmup": 0, "rate": 1e-4, "minimum_rate": 1e-6,
    "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "decay": 0.01, "clip": 1.0, "ema": 0.999,
    # How PyTorch does it.
    **peer_job.TORCH_DEFAULTS,
    "scope": "step",  # of what is compiled: model and losses as one graph, or each layer (regional compilation)
    "cpp_wrapper": 0,  # 1: Inductor's C++ wrapper around its kernels, instead of Python's
    "hoist": 0,  # 1: keys and values of the encoder's output once per layer, as the cost model's second row
}
CHOICES = {"precision": ("fp32", "bf16"), "mode": ("eager", "compile"), "scope": ("step", "layers"),
           "iteration_weights": ("linear", "uniform", "exponential"), "precursor": ("smooth_l1", "log_ppm"),
           "spectrum": ("window_huber", "window_l1", "coverage", "rendered")}
if len(sys.argv) < 2:
    sys.exit(__doc__)
OPTIONS = peer_job.parse(sys.argv[1:], DEFAULTS, CHOICES, may_drop=True)
if not OPTIONS["share"]:
    sys.exit("share=FILE is needed: initial parameters and a batch")
os.environ.setdefault("OMP_NUM_THREADS", str(OPTIONS["threads"]))  # read when torch is loaded

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor import config as inductor  # noqa: E402

import peer_torch  # noqa: E402
import peptide_torch_losses as losses  # noqa: E402
from peptide_torch import Config, Peptide  # noqa: E402

BATCH = ("mz", "intensity", "peak_mask", "precursor_mass", "precursor_charge", "targets", "target_mask")


def config_of(shared, o):
    width, slots = shared["precursor_token"].shape[0], shared["latent_start"].shape[0]

    def layers(stack):
        return len({name.split(".")[2] for name in shared if name.startswith(stack + ".layers.")})

    return Config(width=width, heads=o["heads"], encoder_layers=layers("encoder"), decoder_layers=layers("decoder"),
                  slots=slots, vocabulary=shared["head.weight"].shape[0], supervision_steps=o["supervision_steps"],
                  latent_steps=o["latent_steps"], max_mass=o["max_mass"], dropout=o["dropout"],
                  step_embedding="step_embedding.weight" in shared, gated_answer="gate.weight" in shared,
                  precursor_mz=bool(o["precursor_mz"]), hoist=bool(o["hoist"]))


class Loss(nn.Module):
    """Model and losses in one module, so that one graph can be compiled of both."""

    def __init__(self, model, o, spectrum_weight, precursor_weight):
        super().__init__()
        self.model, self.o = model, o
        self.spectrum_weight, self.precursor_weight = spectrum_weight, precursor_weight
        self.register_buffer("weights", losses.iteration_weights(
            o["iteration_weights"], o["supervision_steps"]).float())

    def spectrum(self, logits, mask, peaks):
        ends = bool(self.o["start_and_end"])
        if self.o["spectrum"] == "coverage":
            return losses.coverage_loss(logits, mask, *peaks, sigma=self.o["coverage_sigma"], has_ends=ends)
        if self.o["spectrum"] == "rendered":
            return losses.cosine_loss(logits, mask, *peaks, sigma=self.o["coverage_sigma"], has_ends=ends)
        return losses.spectrum_loss(logits, mask, *peaks, huber=self.o["spectrum"] == "window_huber",
                                    mask_padding=bool(self.o["mask_padding"]), has_ends=ends)

    def forward(self, mz, intensity, peak_mask, precursor_mass, precursor_charge, targets, target_mask):
        with peer_torch.autocast(self.o):
            logits, _ = self.model(mz, intensity, peak_mask, precursor_mass, precursor_charge)
        logits = logits.float()
        terms = losses.cross_entropies(logits, targets, target_mask, self.o["label_smoothing"])
        total = self.o["ce_weight"] * (self.weights * terms).sum()
        if self.spectrum_weight:
            total = total + self.spectrum_weight * self.spectrum(logits[-1], target_mask, (mz, intensity, peak_mask))
        if self.precursor_weight:
            total = total + self.precursor_weight * losses.precursor_loss(
                logits[-1], target_mask, precursor_mass, self.o["precursor"])
        return total


class Job(peer_torch.Steps):
    def __init__(self, o):
        shared = peer_job.read_shared(o["share"])
        rows = [torch.from_numpy(shared[name].copy()) for name in BATCH]
        self.rows = [(part.long() if part.dtype == torch.int32 else part).to(o["device"]) for part in rows]
        self.dealt = False
        model = Peptide(config_of(shared, o))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(torch.from_numpy(shared[name].copy()))
        weights = (float(shared.get(name, 0)) for name in ("spectrum_weight", "precursor_weight"))
        loss = Loss(model, o, *weights).to(o["device"])
        parameters = list(model.parameters())
        self.averages = [parameter.detach().clone() for parameter in parameters]
        inductor.cpp_wrapper = bool(o["cpp_wrapper"])
        if o["mode"] == "compile":
            layers = (*model.encoder.layers, *model.decoder.layers)
            for part in layers if o["scope"] == "layers" else [loss]:
                part.compile(**peer_torch.compile_settings(o))
        super().__init__(o, loss, parameters, peer_torch.adamw(parameters, o), self.deal, self.average)

    def deal(self):
        """The shared batch, and from then on its rows in another order."""
        if self.dealt:
            order = torch.randperm(len(self.rows[0]), device=self.rows[0].device)
            self.rows = [part[order] for part in self.rows]
        self.dealt = True
        return self.rows

    @torch.no_grad()
    def average(self):
        if self.o["ema"] > 0:
            torch._foreach_lerp_(self.averages, self.parameters, 1 - self.o["ema"])


def main():
    peer_torch.prepare(OPTIONS)
    job = Job(OPTIONS)
    flags = ["scaled_dot_product_attention", "fused AdamW", "foreach clipping", "foreach average", *peer_torch.flags(OPTIONS),
             "one batch, its rows dealt out anew in each step"]
    if OPTIONS["hoist"]:
        flags.append("keys and values of the encoder's output once per layer")
    if OPTIONS["precision"] == "bf16":
        flags.append("autocast(bfloat16) of the model")
    if OPTIONS["mode"] == "compile":
        flags.append(f"torch.compile(mode={OPTIONS['compile_mode']}, dynamic=False, fullgraph=True) "
                     f"of {'each layer' if OPTIONS['scope'] == 'layers' else 'model and losses'}")
        if OPTIONS["cpp_wrapper"]:
            flags.append("inductor cpp_wrapper")
    peer_job.serve(job, {"side": "torch-" + OPTIONS["mode"],
                         "versions": peer_torch.versions(OPTIONS),
                         "flags": flags, "threads": torch.get_num_threads(),
                         "parameters": sum(p.numel() for p in job.parameters)},
                   counted=len(job.rows[0]))


if __name__ == "__main__":
    main()
