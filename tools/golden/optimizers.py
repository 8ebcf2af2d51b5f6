#!/usr/bin/env python3
"""Writes tests/optim/golden/optimizers.json: five steps of every optimiser, and learning rates of every schedule.

SGD, AdamW and the schedules by PyTorch in float64; Lion (arXiv:2302.06675, algorithm 2), Muon
(kellerjordan.github.io/posts/muon, scaled as in arXiv:2502.16982) and the moving average by their formulas in numpy
float64. Hyper-parameters are binary fractions, and Muon's coefficients are rounded to float32 first, so that a program
in float32 has the same constants. Needs: pip install torch numpy.
"""
import json
import math
import pathlib

import numpy
import torch

SHAPES = {"vector": [5], "wide": [3, 4], "tall": [4, 2], "cube": [2, 3, 2]}
STEPS = 5
RATE = 0.0625

torch.manual_seed(7)
as_f32 = lambda tensor: tensor.to(torch.float32).to(torch.float64)
start = {name: as_f32(torch.randn(shape, dtype=torch.float64)) for name, shape in SHAPES.items()}
gradients = [{name: as_f32(torch.randn(shape, dtype=torch.float64)) for name, shape in SHAPES.items()}
             for _ in range(STEPS)]


def decay_of(case, name):
    group = case.get("groups", {}).get(name, {})
    return group.get("weight_decay", case.get("weight_decay", 0.0) if len(SHAPES[name]) >= 2 else 0.0)


def rate_of(case, name):
    return RATE * case.get("groups", {}).get(name, {}).get("learning_rate_multiplier", 1.0)


def clipped(case, step):
    """Gradients after clipping by value and then by norm, and their global norm before."""
    parameters = []
    for name in SHAPES:
        parameter = torch.nn.Parameter(start[name].clone())
        parameter.grad = gradients[step][name].clone()
        parameters.append(parameter)
    norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in parameters])).item()
    if case.get("clip_value", 0) > 0:
        torch.nn.utils.clip_grad_value_(parameters, case["clip_value"])
    if case.get("clip_norm", 0) > 0:
        torch.nn.utils.clip_grad_norm_(parameters, case["clip_norm"])
    return {name: p.grad for name, p in zip(SHAPES, parameters)}, norm


def torch_rule(case, make):
    parameters = {name: torch.nn.Parameter(start[name].clone()) for name in SHAPES}
    optimizer = make([{"params": [parameters[name]], "lr": rate_of(case, name),
                       "weight_decay": decay_of(case, name)} for name in SHAPES])
    for step in range(STEPS):
        grads, norm = clipped(case, step)
        for name, parameter in parameters.items():
            parameter.grad = grads[name]
        optimizer.step()
        yield {name: p.detach().numpy().copy() for name, p in parameters.items()}, norm


def lion_rule(case):
    values = {name: start[name].numpy().copy() for name in SHAPES}
    moments = {name: numpy.zeros(SHAPES[name]) for name in SHAPES}
    for step in range(STEPS):
        grads, norm = clipped(case, step)
        for name in SHAPES:
            g, m, rate = grads[name].numpy(), moments[name], rate_of(case, name)
            direction = numpy.sign(case["beta1"] * m + (1 - case["beta1"]) * g)
            values[name] = values[name] * (1 - rate * decay_of(case, name)) - rate * direction
            moments[name] = case["beta2"] * m + (1 - case["beta2"]) * g
        yield {name: value.copy() for name, value in values.items()}, norm


def orthogonal(x):
    a, b, c = (float(numpy.float32(k)) for k in (3.4445, -4.7750, 2.0315))
    x = x / (numpy.linalg.norm(x) + 1e-7)
    transposed = x.shape[0] > x.shape[1]
    x = x.T if transposed else x
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if transposed else x


def muon_rule(case):
    adamw = torch_rule(case, lambda groups: torch.optim.AdamW(
        groups, betas=(case["beta1"], case["beta2"]), eps=case["epsilon"]))
    matrices = [name for name in SHAPES if len(SHAPES[name]) == 2]
    values = {name: start[name].numpy().copy() for name in matrices}
    moments = {name: numpy.zeros(SHAPES[name]) for name in matrices}
    keep = case["momentum"]
    for step, (others, norm) in enumerate(adamw):
        grads, _ = clipped(case, step)
        for name in matrices:
            g, rate = grads[name].numpy(), rate_of(case, name)
            moments[name] = keep * moments[name] + (1 - keep) * g
            update = keep * moments[name] + (1 - keep) * g if case["nesterov"] else moments[name]
            values[name] = (values[name] * (1 - rate * decay_of(case, name))
                            - rate * 0.2 * math.sqrt(max(SHAPES[name])) * orthogonal(update))
        yield {**others, **{name: value.copy() for name, value in values.items()}}, norm


def sgd_rule(case):
    return torch_rule(case, lambda groups: torch.optim.SGD(
        groups, momentum=case["momentum"], nesterov=case["nesterov"]))


def adamw_rule(case):
    return torch_rule(case, lambda groups: torch.optim.AdamW(
        groups, betas=(case["beta1"], case["beta2"]), eps=case["epsilon"]))


RULES = {"sgd": sgd_rule, "adamw": adamw_rule, "lion": lion_rule, "muon": muon_rule}
CASES = [
    {"name": "sgd", "title": "sgd plain", "momentum": 0.0, "nesterov": False, "weight_decay": 0.25},
    {"name": "sgd", "title": "sgd momentum clipped by value", "momentum": 0.875, "nesterov": False,
     "weight_decay": 0.0, "clip_value": 0.5},
    {"name": "sgd", "title": "sgd nesterov", "momentum": 0.875, "nesterov": True, "weight_decay": 0.25,
     "clip_norm": 1.0},
    {"name": "adamw", "title": "adamw groups and average", "beta1": 0.875, "beta2": 0.96875, "epsilon": 2.0**-20,
     "weight_decay": 0.25, "ema_decay": 0.375,
     "groups": {"vector": {"weight_decay": 0.5, "learning_rate_multiplier": 2.0}, "wide": {"weight_decay": 0.0}}},
    {"name": "lion", "title": "lion clipped twice", "beta1": 0.875, "beta2": 0.96875, "weight_decay": 0.25,
     "clip_value": 1.0, "clip_norm": 2.0},
    {"name": "muon", "title": "muon nesterov", "beta1": 0.875, "beta2": 0.96875, "epsilon": 2.0**-20,
     "momentum": 0.9375, "nesterov": True, "weight_decay": 0.25, "clip_norm": 1.0},
    {"name": "muon", "title": "muon heavy ball", "beta1": 0.875, "beta2": 0.96875, "epsilon": 2.0**-20,
     "momentum": 0.5, "nesterov": False, "weight_decay": 0.0},
]


def run(case):
    steps = []
    averages = {name: start[name].numpy().copy() for name in SHAPES}
    for step, (values, norm) in enumerate(RULES[case["name"]](case)):
        record = {"gradient_norm": norm, "parameters": {n: v.flatten().tolist() for n, v in values.items()}}
        if "ema_decay" in case:
            decay = min(case["ema_decay"], (1 + step) / (10 + step))
            averages = {n: decay * averages[n] + (1 - decay) * values[n] for n in SHAPES}
            record["averages"] = {n: v.flatten().tolist() for n, v in averages.items()}
        steps.append(record)
    return {**case, "steps": steps}


def rates(make, total):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = make(optimizer)
    result = []
    for step in range(total):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step + 1 < total:
            scheduler.step()
    return result


def schedules():
    schedule = torch.optim.lr_scheduler
    total, floor = 20, 0.125
    stable = 20 - 5
    return [
        {"schedule": "one_cycle", "warmup_steps": 6, "total_steps": total, "learning_rate": 1.0,
         "minimum_learning_rate": floor,
         "rates": rates(lambda o: schedule.OneCycleLR(o, max_lr=1.0, total_steps=total, pct_start=6 / total,
                                                      div_factor=25, final_div_factor=1 / (25 * floor),
                                                      cycle_momentum=False), total)},
        {"schedule": "linear", "warmup_steps": 0, "total_steps": total, "learning_rate": 1.0,
         "minimum_learning_rate": floor,
         "rates": rates(lambda o: schedule.LinearLR(o, start_factor=1.0, end_factor=floor, total_iters=total),
                        total + 5)},
        {"schedule": "cosine", "warmup_steps": 0, "total_steps": total, "learning_rate": 1.0,
         "minimum_learning_rate": floor,
         "rates": rates(lambda o: schedule.CosineAnnealingLR(o, T_max=total, eta_min=floor), total + 1)},
        {"schedule": "warmup_stable_decay", "warmup_steps": 3, "total_steps": total, "learning_rate": 1.0,
         "minimum_learning_rate": floor, "decay_fraction": 0.25,
         "rates": [(t + 1) / 4 if t < 3 else 1.0 if t < stable
                   else 1.0 + (floor - 1.0) * min(1.0, (t - stable) / 5) for t in range(total + 3)]},
    ]


golden = {
    "torch": torch.__version__,
    "numpy": numpy.__version__,
    "rate": RATE,
    "shapes": SHAPES,
    "start": {name: value.flatten().tolist() for name, value in start.items()},
    "gradients": [{name: value.flatten().tolist() for name, value in step.items()} for step in gradients],
    "cases": [run(case) for case in CASES],
    "schedules": schedules(),
}
path = pathlib.Path(__file__).parents[2] / "tests/optim/golden/optimizers.json"
path.write_text(json.dumps(golden) + "\n")
