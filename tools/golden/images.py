#!/usr/bin/env python3
"""Writes tests/ops/golden/images.json: what PyTorch computes, in float64, for layers over one to three spatial axes.

Convolutions, transposed convolutions, pooling, upsampling, batch and group normalisation: result and gradients for a
given cotangent. Operands are multiples of 1/8, so that they are written short and many are equal: ties are tested too.
Needs: pip install torch.
"""
import json
import pathlib

import torch
import torch.nn.functional as F

generator = torch.Generator().manual_seed(27)


def eighths(*shape):
    return (torch.randint(-16, 17, shape, generator=generator).to(torch.float64) / 8)


def tensor(value):
    return {"shape": list(value.shape), "values": [round(v, 12) for v in value.detach().flatten().tolist()]}


cases = []


def case(name, layer, options, operands, function):
    """function(**operands) -> y; gradients of sum(y * dy) by all operands."""
    leaves = {key: value.clone().requires_grad_() for key, value in operands.items()}
    y = function(**leaves)
    dy = eighths(*y.shape)
    gradients = torch.autograd.grad((y * dy).sum(), list(leaves.values()))
    cases.append({"name": name, "layer": layer, "options": options,
                  "operands": {key: tensor(value) for key, value in operands.items()},
                  "y": tensor(y), "dy": tensor(dy),
                  "gradients": {key: tensor(g) for key, g in zip(leaves, gradients)}})


CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def conv(name, x, outputs, kernel, transposed=False, **options):
    groups = options.get("groups", 1)
    channels = (x[1], outputs // groups) if transposed else (outputs, x[1] // groups)
    function = (TRANSPOSED if transposed else CONV)[len(kernel)]
    case(name, "transposed_convolution" if transposed else "convolution", options,
         {"x": eighths(*x), "weight": eighths(*channels, *kernel), "bias": eighths(outputs)},
         lambda x, weight, bias: function(x, weight, bias, **options))


conv("conv1d", (2, 3, 7), 4, (3,), padding=1)
conv("conv1d, strides, groups", (1, 4, 9), 6, (4,), stride=2, groups=2)
conv("conv2d", (2, 3, 5, 4), 4, (3, 3), padding=1)
conv("conv2d, strides, dilations", (1, 2, 7, 8), 3, (3, 2), stride=(2, 3), padding=(1, 2), dilation=(2, 1))
conv("conv2d, depthwise", (1, 3, 4, 4), 6, (3, 3), padding=1, groups=3)
conv("conv2d, 1 x 1 with strides", (1, 3, 5, 5), 2, (1, 1), stride=2)
conv("conv3d", (1, 2, 3, 4, 3), 2, (2, 3, 2), stride=(1, 2, 1), padding=(0, 1, 1))
conv("conv_transpose1d", (1, 3, 4), 2, (3,), True, stride=2, padding=1, output_padding=1)
conv("conv_transpose2d, groups", (1, 4, 3, 3), 4, (3, 2), True, stride=(2, 3), padding=(1, 0), groups=2)
conv("conv_transpose2d, dilations", (1, 2, 3, 2), 3, (2, 3), True, stride=2, padding=1, dilation=2, output_padding=1)
conv("conv_transpose3d", (1, 2, 2, 2, 3), 2, (2, 2, 2), True, stride=2)


def pool(name, layer, x, function, **options):
    case(name, layer, options, {"x": eighths(*x)}, lambda x: function(x, options))


MAX = {3: F.max_pool1d, 4: F.max_pool2d, 5: F.max_pool3d}
AVERAGE = {3: F.avg_pool1d, 4: F.avg_pool2d, 5: F.avg_pool3d}


def max_pool(x, o):
    return MAX[x.dim()](x, o["kernel"], o.get("stride"), o.get("padding", 0), o.get("dilation", 1))


def average_pool(x, o):
    return AVERAGE[x.dim()](x, o["kernel"], o.get("stride"), o.get("padding", 0),
                            count_include_pad=o.get("count_padding", True))


pool("max_pool1d", "max_pool", (2, 2, 7), max_pool, kernel=3, stride=2, padding=1)
pool("max_pool2d", "max_pool", (1, 2, 4, 6), max_pool, kernel=2)
pool("max_pool2d, overlapping", "max_pool", (1, 2, 5, 5), max_pool, kernel=3, stride=2, padding=1)
pool("max_pool2d, dilations", "max_pool", (1, 1, 6, 7), max_pool, kernel=[2, 3], stride=1, dilation=[2, 1])
pool("max_pool3d", "max_pool", (1, 1, 3, 4, 4), max_pool, kernel=[1, 2, 3], stride=[2, 1, 1])
pool("avg_pool1d", "average_pool", (1, 2, 7), average_pool, kernel=3, stride=2, padding=1)
pool("avg_pool2d", "average_pool", (1, 2, 4, 6), average_pool, kernel=2)
pool("avg_pool2d, padding not counted", "average_pool", (1, 1, 5, 5), average_pool, kernel=3, stride=2, padding=1,
     count_padding=False)
pool("avg_pool3d", "average_pool", (1, 1, 3, 4, 4), average_pool, kernel=[2, 3, 2], stride=1)
ADAPTIVE_AVERAGE = {3: F.adaptive_avg_pool1d, 4: F.adaptive_avg_pool2d, 5: F.adaptive_avg_pool3d}
ADAPTIVE_MAX = {3: F.adaptive_max_pool1d, 4: F.adaptive_max_pool2d, 5: F.adaptive_max_pool3d}
pool("adaptive_avg_pool1d", "adaptive_average_pool", (1, 2, 7), lambda x, o: ADAPTIVE_AVERAGE[3](x, o["output"]), output=3)
pool("adaptive_avg_pool2d", "adaptive_average_pool", (1, 2, 6, 5), lambda x, o: ADAPTIVE_AVERAGE[4](x, o["output"]),
     output=[3, 2])
pool("adaptive_avg_pool3d to one", "adaptive_average_pool", (2, 1, 2, 3, 2),
     lambda x, o: ADAPTIVE_AVERAGE[5](x, o["output"]), output=1)
# No ties: a tie between windows' elements is shared equally here, and goes to the first there.
distinct = torch.randperm(2 * 6 * 5, generator=generator).to(torch.float64).reshape(1, 2, 6, 5) / 8
case("adaptive_max_pool2d", "adaptive_max_pool", {"output": [4, 3]}, {"x": distinct},
     lambda x: F.adaptive_max_pool2d(x, [4, 3]))

LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}
for name, x, output in (("2d, twice", (1, 2, 3, 2), [6, 4]), ("2d", (1, 1, 4, 5), [7, 3]), ("1d", (2, 1, 5), [8]),
                        ("3d", (1, 1, 2, 3, 2), [3, 5, 4])):
    pool("nearest " + name, "upsample_nearest", x, lambda x, o: F.interpolate(x, o["output"], mode="nearest"),
         output=output)
    pool("linear " + name, "upsample_linear", x,
         lambda x, o: F.interpolate(x, o["output"], mode=LINEAR[x.dim()], align_corners=False), output=output)
    pool("linear, corners aligned, " + name, "upsample_linear", x,
         lambda x, o: F.interpolate(x, o["output"], mode=LINEAR[x.dim()], align_corners=True), output=output,
         align_corners=True)

for name, shape, groups in (("group_norm", (2, 6, 3, 2), 3), ("group_norm of one group", (2, 4, 3), 1)):
    case(name, "group_norm", {"groups": groups, "epsilon": 1 / 1024},
         {"x": eighths(*shape), "weight": eighths(shape[1]), "bias": eighths(shape[1])},
         lambda x, weight, bias: F.group_norm(x, groups, weight, bias, 1 / 1024))
case("instance_norm", "instance_norm", {"epsilon": 1 / 1024}, {"x": eighths(2, 3, 4, 3)},
     lambda x: F.instance_norm(x, eps=1 / 1024))
for name, shape in (("batch_norm of images", (3, 4, 2, 3)), ("batch_norm of vectors", (5, 3)),
                    ("batch_norm of sequences", (2, 3, 4))):
    mean, variance = eighths(shape[1]), eighths(shape[1]).abs() + 1
    before = [tensor(mean), tensor(variance)]
    case(name, "batch_norm", {"epsilon": 1 / 1024, "momentum": 0.25, "mean": before[0], "variance": before[1]},
         {"x": eighths(*shape), "weight": eighths(shape[1]), "bias": eighths(shape[1])},
         lambda x, weight, bias: F.batch_norm(x, mean, variance, weight, bias, True, 0.25, 1 / 1024))
    cases[-1]["next"] = [tensor(mean), tensor(variance)]
    case(name + ", evaluated", "batch_norm_evaluated",
         {"epsilon": 1 / 1024, "mean": tensor(mean), "variance": tensor(variance)},
         {"x": eighths(*shape), "weight": eighths(shape[1]), "bias": eighths(shape[1])},
         lambda x, weight, bias: F.batch_norm(x, mean, variance, weight, bias, False, 0.25, 1 / 1024))

path = pathlib.Path(__file__).parents[2] / "tests/ops/golden/images.json"
path.parent.mkdir(exist_ok=True)
path.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")
