#!/usr/bin/env python3
"""Writes tests/optim/golden/adamw.json: a few steps of torch.optim.AdamW in float64.

Needs torch; neither the build nor the tests do. Gradients are given, not computed, and stored with the
results, so that both sides need no common formula. Usage:

    python3 tools/golden/adamw_golden.py > tests/optim/golden/adamw.json

A graph keeps constants in the dtype of the tensors that they meet, f32, in the interpreter too. The
hyperparameters of the cases marked `exact` are multiples of powers of two, so that both sides compute
with the same numbers and agree to 1e-10.
"""
import json
import math
import sys

import torch

SHAPES = {"vector": [5], "matrix": [3, 4], "cube": [2, 3, 2], "one": [1]}
GRADIENT_SCALES = [1.0, 1e-3, 30.0, 0.2, 1e-6]  # of each step: with clip 0.75 on, off, on, on, off
SCHEDULE = {"learning_rate": 0.05, "minimum_learning_rate": 0.01, "warmup_steps": 2, "total_steps": 4}
CASES = [
    {"name": "clipped", "exact": True, "beta1": 0.875, "beta2": 63 / 64, "epsilon": 2.0**-20,
     "weight_decay": 0.3, "clip_norm": 0.75},
    {"name": "unclipped", "exact": True, "beta1": 0.75, "beta2": 0.875, "epsilon": 2.0**-10,
     "weight_decay": 0.3, "clip_norm": 0.0},
    {"name": "without decay", "exact": True, "beta1": 0.0, "beta2": 0.5, "epsilon": 2.0**-20,
     "weight_decay": 0.0, "clip_norm": 0.75},
    {"name": "usual", "exact": False, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
     "weight_decay": 0.1, "clip_norm": 1.0},
]


def learning_rate(step):
    rate, minimum, warmup, total = SCHEDULE.values()
    if step < warmup:
        return rate * (step + 1) / (warmup + 1)
    progress = min(1.0, (step - warmup) / (total - warmup))
    return minimum + 0.5 * (rate - minimum) * (1 + math.cos(math.pi * progress))


def run(case, start, gradients):
    parameters = {name: torch.nn.Parameter(value.double()) for name, value in start.items()}
    groups = [{"params": [p for p in parameters.values() if p.dim() >= 2],
               "weight_decay": case["weight_decay"]},
              {"params": [p for p in parameters.values() if p.dim() < 2], "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, betas=(case["beta1"], case["beta2"]), eps=case["epsilon"],
                                  foreach=False, fused=False)
    steps = []
    for step, by_name in enumerate(gradients):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step)
        for name, parameter in parameters.items():
            parameter.grad = by_name[name].double()
        limit = case["clip_norm"] or math.inf
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), limit, foreach=False).item()
        optimiser.step()
        steps.append({"learning_rate": learning_rate(step), "gradient_norm": norm,
                      "parameters": {name: flat(p) for name, p in parameters.items()}})
    state = {name: optimiser.state[p] for name, p in parameters.items()}
    return {**case, "steps": steps,
            "moment1": {name: flat(s["exp_avg"]) for name, s in state.items()},
            "moment2": {name: flat(s["exp_avg_sq"]) for name, s in state.items()}}


def flat(tensor):
    return tensor.detach().flatten().tolist()


def main():
    torch.manual_seed(0)
    # f32 values, so that the compiled step starts from the same numbers.
    start = {name: torch.randn(shape, dtype=torch.float32) for name, shape in SHAPES.items()}
    gradients = [{name: scale * torch.randn(shape, dtype=torch.float32)
                  for name, shape in SHAPES.items()} for scale in GRADIENT_SCALES]
    result = {"torch": torch.__version__.split("+")[0], "schedule": SCHEDULE, "shapes": SHAPES,
              "start": {name: flat(value) for name, value in start.items()},
              "gradients": [{name: flat(value) for name, value in by_name.items()}
                            for by_name in gradients],
              "cases": [run(case, start, gradients) for case in CASES]}
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    main()
