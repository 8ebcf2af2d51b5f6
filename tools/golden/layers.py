#!/usr/bin/env python3
"""Writes tests/nn/golden/layers.json: what PyTorch's recurrent and attention layers make of given weights, in float64.

Results and gradients of sum(y * dy) by the input and by all parameters, under PyTorch's names. Operands are multiples of
1/8, which f32 holds exactly. Needs: pip install torch.
"""
import json
import pathlib

import torch

generator = torch.Generator().manual_seed(27)


def eighths(*shape):
    return torch.randint(-8, 9, shape, generator=generator).to(torch.float64) / 8


def tensor(value):
    return {"shape": list(value.shape), "values": [round(v, 12) for v in value.detach().flatten().tolist()]}


cases = []


def case(name, layer, options, module, inputs, function):
    """function(module, **inputs) -> results by name; gradients are of all of them, each times a cotangent."""
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(eighths(*parameter.shape))
    leaves = {key: value.clone().requires_grad_() for key, value in inputs.items()}
    results = function(module, **leaves)
    cotangents = {key: eighths(*value.shape) for key, value in results.items()}
    loss = sum((results[key] * cotangents[key]).sum() for key in results)
    loss.backward()
    cases.append({"name": name, "layer": layer, "options": options,
                  "inputs": {key: tensor(value) for key, value in inputs.items()},
                  "parameters": {key: tensor(value) for key, value in module.named_parameters()},
                  "results": {key: tensor(value) for key, value in results.items()},
                  "cotangents": {key: tensor(value) for key, value in cotangents.items()},
                  "gradients": {**{key: tensor(value.grad) for key, value in leaves.items()},
                                **{key: tensor(value.grad) for key, value in module.named_parameters()}}})


def recurrent(name, layer, x, units, given=False, **options):
    kind = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[layer]
    module = kind(x[2], units, options.get("layers", 1), batch_first=options.get("batch_first", False),
                  bidirectional=options.get("bidirectional", False))
    rows = options.get("layers", 1) * (2 if options.get("bidirectional") else 1)
    batch = x[0] if options.get("batch_first") else x[1]
    inputs = {"x": eighths(*x)}
    if given:
        inputs["hidden"] = eighths(rows, batch, units)
        if layer == "lstm":
            inputs["cell"] = eighths(rows, batch, units)

    def function(module, x, hidden=None, cell=None):
        state = None if hidden is None else hidden if cell is None else (hidden, cell)
        outputs, last = module(x, state)
        if layer == "gru":
            return {"outputs": outputs, "hidden": last}
        return {"outputs": outputs, "hidden": last[0], "cell": last[1]}

    case(name, layer, {**options, "units": units}, module, inputs, function)


recurrent("gru", "gru", (3, 2, 3), 2)
recurrent("gru, two layers both ways, given states", "gru", (2, 3, 2), 2, given=True, layers=2, bidirectional=True,
          batch_first=True)
recurrent("lstm", "lstm", (3, 2, 3), 2)
recurrent("lstm, two layers both ways, given states", "lstm", (2, 3, 2), 2, given=True, layers=2, bidirectional=True,
          batch_first=True)


def attention(name, layer, x, heads, memory=None, causal=False, bias=True):
    inputs = {"x": eighths(*x)}
    if memory is not None:
        inputs["memory"] = eighths(*memory)

    def function(module, x, memory=None):
        seen = x if memory is None else memory
        mask = torch.ones(x.shape[1], seen.shape[1]).triu(1).bool() if causal else None
        return {"y": module(x, seen, seen, attn_mask=mask, need_weights=False)[0]}

    case(name, layer, {"heads": heads, "causal": causal, "bias": bias},
         torch.nn.MultiheadAttention(x[2], heads, bias=bias, batch_first=True), inputs, function)


attention("attention", "attention", (2, 3, 4), 2)
attention("attention, causal, without biases", "attention", (1, 4, 4), 1, causal=True, bias=False)
attention("cross attention", "cross_attention", (2, 3, 4), 2, memory=(2, 5, 4))

path = pathlib.Path(__file__).resolve().parents[2] / "tests/nn/golden/layers.json"
path.parent.mkdir(exist_ok=True)
path.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n", encoding="utf-8")
