#!/usr/bin/env python3
"""Writes tools/support/core_aten.txt: the names of PyTorch's core ATen operators, those that carry its tag `core`, without
overloads. Needs: pip install torch."""
import pathlib

import torch

names = set()
for qualified in torch._C._dispatch_get_all_op_names():
    if not qualified.startswith("aten::"):
        continue
    name, _, overload = qualified.removeprefix("aten::").partition(".")
    operator = getattr(getattr(torch.ops.aten, name, None), overload or "default", None)
    if operator is not None and torch.Tag.core in operator.tags:
        names.add(name)
path = pathlib.Path(__file__).parents[1] / "support" / "core_aten.txt"
path.write_text("\n".join(sorted(names)) + "\n", encoding="utf-8")
print(f"{path}: {len(names)} names of PyTorch {torch.__version__}")
