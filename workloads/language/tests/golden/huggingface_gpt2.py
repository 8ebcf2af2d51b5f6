#!/usr/bin/env python3
"""Writes workloads/language/tests/golden/huggingface_gpt2: a tiny random GPT-2 as Hugging Face's transformers saves it, and logits.

With --check FOLDER it loads what `fullbore export` wrote instead, and compares its logits with those of the golden
model: the way back. Needs: pip install torch transformers.
"""
import json
import pathlib
import sys

import torch
import transformers

FOLDER = pathlib.Path(__file__).parent / "huggingface_gpt2"
TOKENS = [[1, 5, 2, 8, 16, 0, 3, 3, 11, 7], [9, 9, 4, 12, 6, 1, 14, 2, 10, 15]]


def logits_of(folder):
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).to(torch.float64).eval()
    with torch.no_grad():
        return model(torch.tensor(TOKENS)).logits


if len(sys.argv) == 3 and sys.argv[1] == "--check":
    golden = json.loads((FOLDER / "logits.json").read_text())["logits"]
    difference = (logits_of(sys.argv[2]) - torch.tensor(golden, dtype=torch.float64)).abs().max().item()
    print(f"largest difference of logits: {difference:.3g}")
    sys.exit(difference > 1e-6)

torch.manual_seed(11)
config = transformers.GPT2Config(vocab_size=17, n_positions=12, n_embd=8, n_layer=2, n_head=2)
model = transformers.GPT2LMHeadModel(config)
with torch.no_grad():
    # The library's initial values make biases zero, gains one and logits alike: nothing would be tested.
    for parameter in model.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
model.save_pretrained(FOLDER)
(FOLDER / "generation_config.json").unlink(missing_ok=True)
golden = {"transformers": transformers.__version__, "torch": torch.__version__, "tokens": TOKENS,
          "logits": logits_of(FOLDER).tolist()}
(FOLDER / "logits.json").write_text(json.dumps(golden) + "\n")
