#!/usr/bin/env python3
"""Writes workloads/energy_flow/tests/golden/steps.json: training steps of a small lattice in PyTorch, in float64.

Needs torch and numpy; neither the build nor the tests do. Usage:

    python3 workloads/energy_flow/tests/golden/energy_steps.py > workloads/energy_flow/tests/golden/steps.json

The model is workloads/energy_flow/bench/peers/flow_torch.py, written from the specification. Parameters and batches come from
SplitMix64, so that both sides make them from a formula: with u uniform in [-1, 1), element i of tensor k has u from the 53
high bits of splitmix(k 2^32 + i). Parameters are numbered by their sorted names. Matrices are 1.5 u sqrt(3 / columns), gains
1 + 0.1 u, all else 0.3 u; a step's inputs (k = 1000 + step) and targets (k = 2000 + step) are u.

Of each training step: loss, norm of the gradient before clipping, steps that flows made, flows created, children dropped.
"""
import dataclasses
import json
import math
import pathlib
import sys

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))
import flow_torch  # noqa: E402

# Cells lie a quarter and an eighth of the lattice's extents apart, so that moves of the most length, which are clamped, end at
# cells and not between two, where rounding would decide.
LATTICE = flow_torch.Lattice(width=9, height=5, depth=12, capacity=130, spawn_threshold=0.3, most_spawned=2,
                             stop_threshold=0.3, stop_patience=2, stop_min_steps=3)
SIZES = flow_torch.Sizes(embedding=6, cells=LATTICE.surface, neuron_hidden=4, neuron_outputs=3, carrier_hidden=8,
                         carrier_layers=2, head_hidden=4)
BATCH, STEPS = 2, 5
# This epsilon keeps gradients that are all rounding from deciding the sign of an update.
RATE, BETA1, BETA2, EPSILON, DECAY, CLIP = 1e-2, 0.9, 0.999, 1e-5, 0.1, 0.05


def uniform(ordinal, shape):
    """Steele, Lea, Flood 2014."""
    with np.errstate(over="ignore"):
        z = np.arange(math.prod(shape), dtype=np.uint64) + np.uint64(ordinal << 32) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    values = (z >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1
    return torch.tensor(values.reshape(shape))


@torch.no_grad()
def fill(model):
    for ordinal, (name, parameter) in enumerate(sorted(model.named_parameters())):
        u = uniform(ordinal, tuple(parameter.shape))
        if parameter.dim() == 2:
            u = 1.5 * u * math.sqrt(3 / parameter.shape[1])
        elif name == "mapper.gain" or (".norms." in name and name.endswith("weight")):
            u = 1 + 0.1 * u
        else:
            u = 0.3 * u
        parameter.copy_(u.float())  # the C++ side's are f32


def train(lattice):
    model = flow_torch.Flows(SIZES, lattice).double()
    fill(model)
    trained = model.trained()
    optimiser = torch.optim.AdamW(trained, lr=RATE, betas=(BETA1, BETA2), eps=EPSILON, weight_decay=DECAY)
    found = []
    for step in range(STEPS):
        inputs, targets = (uniform(base + step, (BATCH, SIZES.embedding)).float().double() for base in (1000, 2000))
        start, target = model.surfaces(inputs, targets)
        counts = {}
        surface = flow_torch.run_compact(model, start, torch.float64, counts)
        masked = flow_torch.run_masked(model, start, torch.float64)
        assert torch.allclose(surface, masked, rtol=0, atol=1e-12), "two ways, one surface"
        loss = (surface - target).square().mean()
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(trained, CLIP).item()
        optimiser.step()
        found.append({"loss": loss.item(), "gradient_norm": norm, "steps": counts["executed"],
                      "created": counts["created"], "dropped": counts["dropped"]})
    return found


def main():
    json.dump({"torch": torch.__version__.split("+")[0], "lattice": dataclasses.asdict(LATTICE),
               "sizes": dataclasses.asdict(SIZES), "batch": BATCH,
               "optimiser": {"rate": RATE, "beta1": BETA1, "beta2": BETA2, "epsilon": EPSILON, "decay": DECAY, "clip": CLIP},
               "steps": train(LATTICE)},
              sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
