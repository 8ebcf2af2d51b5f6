#!/usr/bin/env python3
"""Writes workloads/peptide/tests/golden/model.json: the recursive peptide transformer in PyTorch, in float64.

Needs torch; neither the build nor the tests do. Usage:

    python3 workloads/peptide/tests/golden/peptide.py > workloads/peptide/tests/golden/model.json

The model and the losses are those of workloads/peptide/bench/peers/peptide_torch*.py, written from the specification.
Parameters come from SplitMix64, so that both sides make them from a formula: with u uniform in [-1, 1), element i of tensor k has
u from the 53 high bits of splitmix(k 2^32 + i); gains and scales are 1 + 0.1 u, all else 0.3 u.

Each case has its own configuration, inputs and total loss (`total.terms`: its coefficients); all loss terms are listed,
also those that the total leaves out. `gradients`: by parameter [sum, sum of squares, sum of g[i] sin(i + 1)].
`smallest_window_margin` says how far every distance stays from the jumps of the spectrum loss, in Da.
"""
import dataclasses
import json
import math
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))
import peptide_torch_losses as losses  # noqa: E402
from peptide_torch import Config, Peptide  # noqa: E402

TINY = Config(width=48, heads=2, encoder_layers=1, decoder_layers=2, slots=6, supervision_steps=3, latent_steps=2)
PEAKS = 7
PEAKS_PRESENT = (7, 5)
# From predicted ions to the peaks that are put near them, in Da; one is out of reach.
OFFSETS = (0.07, -0.13, 0.31, -0.23, 0.02, 0.61, -0.41)
INTENSITIES = ((0.31, 0.9, 0.22, 0.55, 1.0, 0.13, 0.47), (0.66, 0.05, 1.0, 0.4, 0.28, 0, 0))
CHARGES = (2, 3)
TARGETS = {True: ((1, 11, 4, 2, 0, 0), (1, 15, 18, 9, 20, 2)), False: ((11, 4, 14, 0, 0, 0), (15, 18, 9, 20, 8, 0))}
LENGTHS = {True: (4, 6), False: (3, 5)}
CASES = {
    "reference": (TINY, True, {"cross_entropy_linear": 1.0, "spectrum_huber_masked": 0.15}),
    "gated": (dataclasses.replace(TINY, step_embedding=True, gated_answer=True), True,
              {"cross_entropy_uniform_smoothed": 1.0, "coverage": 0.5, "precursor_smooth_l1": 0.08}),
    "precursor_mz": (dataclasses.replace(TINY, precursor_mz=True), True,
                     {"cross_entropy_exponential": 1.0, "spectrum_l1_unmasked": 0.3, "precursor_log_ppm": 0.2}),
    "bare_targets": (TINY, False, {"cross_entropy_exponential_smoothed": 1.0, "spectrum_l1_masked": 0.5,
                                   "cosine": 0.25}),
}
TRIES = 300
MASK = (1 << 64) - 1


def uniform(state):
    """In [-1, 1) from SplitMix64. Steele, Lea, Flood 2014."""
    z = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return 2 * ((z ^ (z >> 31)) >> 11) * 2.0**-53 - 1


@torch.no_grad()
def fill(model):
    for ordinal, (name, parameter) in enumerate(model.ordered_parameters()):
        values = torch.tensor([uniform((ordinal << 32) + i) for i in range(parameter.numel())])
        gain = name.endswith((".scale", "norm.weight"))
        parameter.copy_((1 + 0.1 * values if gain else 0.3 * values).view_as(parameter))
    # The C++ side's constants are f32. Of these frequencies it shows: they are multiplied by hundreds of turns.
    for name, buffer in model.named_buffers():
        if name.endswith("turns_per_dalton"):
            buffer.copy_(buffer.float().double())


def batch_for(model, has_ends):
    """Peaks near ions that the model itself predicts, so that every loss has something to match. What it predicts
    depends on the peaks, by wavelengths of 0.1 Da: so the best of many tries."""
    targets = torch.tensor(TARGETS[has_ends])
    masks = torch.arange(targets.shape[1]) < torch.tensor(LENGTHS[has_ends]).unsqueeze(1)
    masses = torch.tensor(losses.MASSES)[targets].sum(1) + losses.WATER
    present = torch.arange(PEAKS) < torch.tensor(PEAKS_PRESENT).unsqueeze(1)
    batch = {"mz": torch.where(present, 150.0 + 50 * torch.arange(PEAKS), 0), "intensity": torch.tensor(INTENSITIES),
             "peak_mask": present, "precursor_mass": masses, "precursor_charge": torch.tensor(CHARGES),
             "targets": targets, "target_mask": masks}
    best, best_score = None, -1
    for _ in range(TRIES):
        logits = predict(model, batch)[0][-1]
        ions, real = losses.fragments(logits, masks, has_ends)
        near = (ions.unsqueeze(2) - batch["mz"].unsqueeze(1)).abs() < losses.WINDOW
        score = (near & present.unsqueeze(1) & real.unsqueeze(2)).any(2).sum(1).min().item()
        if score > best_score and window_margin(logits, batch, has_ends) > 0.01:
            best, best_score = dict(batch), score
        batch["mz"] = peaks_near(ions, real)
    return best


def peaks_near(ions, real):
    rows = []
    for row, count in enumerate(PEAKS_PRESENT):
        found = ions[row][real[row]]
        near = [found[i % len(found)].item() + offset for i, offset in enumerate(OFFSETS)]
        rows.append(sorted(round(value, 3) for value in near[:count]) + [0.0] * (PEAKS - count))
    return torch.tensor(rows)


def predict(model, batch):
    return model(*(batch[key] for key in ("mz", "intensity", "peak_mask", "precursor_mass", "precursor_charge")))


def window_margin(logits, batch, has_ends):
    """Least distance of | |ion - peak| - edge | over the edges of the window and of the Huber form and 0."""
    margin = math.inf
    for mask in (None, batch["target_mask"]):
        masses = losses.residues(losses.expected_masses(logits, mask), has_ends)
        b, y = (ladder[:, :-1] for ladder in losses.ladders(masses))
        ions = torch.cat([b, y, b - losses.CARBON_MONOXIDE], 1)
        distance = (ions.unsqueeze(2) - batch["mz"].unsqueeze(1)).abs()[
            batch["peak_mask"].unsqueeze(1).expand(-1, ions.shape[1], -1)]
        for edge in (0, losses.WINDOW, losses.HUBER_DELTA):
            margin = min(margin, (distance - edge).abs().min().item())
    return margin


def terms_of(logits, batch, has_ends):
    """Every loss term by name, and the cross-entropies of each step."""
    targets, mask = batch["targets"], batch["target_mask"]
    peaks = (batch["mz"], batch["intensity"], batch["peak_mask"])
    steps = {smoothing: losses.cross_entropies(logits, targets, mask, smoothing) for smoothing in (0.0, 0.1)}
    terms = {}
    for kind in ("linear", "uniform", "exponential"):
        weights = losses.iteration_weights(kind, len(logits))
        terms[f"cross_entropy_{kind}"] = (weights * steps[0.0]).sum()
        terms[f"cross_entropy_{kind}_smoothed"] = (weights * steps[0.1]).sum()
    for form in ("l1", "huber"):
        for padding in ("masked", "unmasked"):
            terms[f"spectrum_{form}_{padding}"] = losses.spectrum_loss(
                logits[-1], mask, *peaks, huber=form == "huber", mask_padding=padding == "masked", has_ends=has_ends)
    terms["coverage"] = losses.coverage_loss(logits[-1], mask, *peaks, has_ends=has_ends)
    terms["cosine"] = losses.cosine_loss(logits[-1], mask, *peaks, has_ends=has_ends)
    terms["cosine_on_grid"] = losses.cosine_loss_on_grid(logits[-1], mask, *peaks, has_ends=has_ends)
    for form in ("smooth_l1", "log_ppm"):
        terms[f"precursor_{form}"] = losses.precursor_loss(logits[-1], mask, batch["precursor_mass"], form)
    return terms, {"plain": steps[0.0].tolist(), "smoothed": steps[0.1].tolist()}


def summary(gradient):
    if gradient is None:
        return None
    flat = gradient.flatten()
    return [flat.sum().item(), (flat * flat).sum().item(),
            (flat * torch.sin(torch.arange(len(flat), dtype=flat.dtype) + 1)).sum().item()]


def case(config, has_ends, coefficients):
    model = Peptide(config)
    fill(model)
    with torch.no_grad():
        batch = batch_for(model, has_ends)
    logits, latent = predict(model, batch)
    terms, steps = terms_of(logits, batch, has_ends)
    total = sum(coefficient * terms[name] for name, coefficient in coefficients.items())
    total.backward()
    parameters = model.ordered_parameters()
    return {
        "config": {**dataclasses.asdict(config), "has_ends": has_ends},
        "inputs": {key: value.tolist() for key, value in batch.items()},
        "parameters": {name: list(parameter.shape) for name, parameter in parameters},
        "smallest_window_margin": window_margin(logits[-1], batch, has_ends),
        "logits": logits.tolist(),
        "latent_sum": latent.sum().item(), "latent_square_sum": latent.square().sum().item(),
        "cross_entropy_steps": steps,
        "terms": {name: value.item() for name, value in terms.items()},
        "total": {"terms": coefficients, "value": total.item()},
        "gradients": {name: summary(parameter.grad) for name, parameter in parameters},
    }


def main():
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    result = {"torch": torch.__version__.split("+")[0],
              "cases": {name: case(*arguments) for name, arguments in CASES.items()}}
    text = json.dumps(result)
    # One member a line down to the third level: a change can be read in a diff, numbers do not fill the screen.
    for name in CASES:
        text = text.replace(f'"{name}": {{', f'\n"{name}": {{')
    for key in ("config", "inputs", "parameters", "smallest_window_margin", "logits", "latent_sum", "cross_entropy_steps",
                "terms", "total", "gradients"):
        text = text.replace(f', "{key}": ', f',\n "{key}": ')
    print(text)


if __name__ == "__main__":
    main()
