#!/usr/bin/env python3
"""Writes workloads/language/tests/golden/huggingface_llama: what Hugging Face's transformers computes of small Llamas and
Qwen2s, each with other options, and of one in SmolLM2's shape of two layers.

A model's folder has its config.json and expected.safetensors: tokens, logits, the states behind the first block and
behind the last norm, 64 greedy tokens. Weights are not kept: both programs make them by the counter-based generator
below, from each tensor's name. With --check FOLDER it loads what `fullbore export` wrote instead, and prints the loss of
tokens 0, 1, 2, ...: the way back. Needs: pip install torch transformers.
"""
import pathlib
import sys

import numpy
import safetensors.torch
import torch
import transformers

FOLDER = pathlib.Path(__file__).parent / "huggingface_llama"
GREEDY = 64
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
SMALL = dict(vocab_size=23, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=96, bos_token_id=None, eos_token_id=None, pad_token_id=None)
MODELS = {
    "grouped": ("llama", dict(SMALL, num_key_value_heads=2)),
    "tied_llama3": ("llama", dict(SMALL, num_key_value_heads=1, head_dim=6, tie_word_embeddings=True,
                                  attention_bias=True, mlp_bias=True, rms_norm_eps=1e-5,
                                  rope_parameters=dict(LLAMA3, rope_theta=500.0))),
    "linear": ("llama", dict(SMALL, num_key_value_heads=4,
                             rope_parameters={"rope_type": "linear", "factor": 3.0, "rope_theta": 10000.0})),
    "qwen2": ("qwen2", dict(SMALL, num_key_value_heads=2, tie_word_embeddings=True,
                            rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})),
    "qwen2_window": ("qwen2", dict(SMALL, num_hidden_layers=3, num_key_value_heads=1, use_sliding_window=True,
                                   sliding_window=5, max_window_layers=1)),
    "smollm2": ("llama", dict(SMALL, vocab_size=4096, hidden_size=576, intermediate_size=1536, num_attention_heads=9,
                              num_key_value_heads=3, tie_word_embeddings=True, rms_norm_eps=1e-5,
                              rope_parameters={"rope_type": "default", "rope_theta": 100000.0})),
}


def drawn(name, shape):
    """Element i of a tensor: 24 bits of SplitMix64 (Steele, Lea, Flood 2014) at FNV-1a(name) + i, evenly in [-1, 1)."""
    with numpy.errstate(over="ignore"):
        state = numpy.uint64(0xCBF29CE484222325)
        for byte in name.encode():
            state = (state ^ numpy.uint64(byte)) * numpy.uint64(0x100000001B3)
        count = int(numpy.prod(shape))
        z = state + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z ^= z >> numpy.uint64(31)
    unit = (z >> numpy.uint64(40)).astype(numpy.float32) / numpy.float32(1 << 23) - numpy.float32(1)
    return unit.reshape(shape)


def fill(model):
    """Norms near 1; matrices so that a layer keeps its input's size or halves it, by a power of two."""
    for name, parameter in model.named_parameters():
        unit = drawn(name, parameter.shape)
        if parameter.dim() == 1:
            value = unit * numpy.float32(0.25) + numpy.float32("norm" in name)
        else:
            power = numpy.floor(numpy.log2(3 / parameter.shape[1]) / 2)
            value = unit * numpy.float32(2.0 ** power)
        parameter.copy_(torch.from_numpy(value))


def loss_of(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    tokens = torch.arange(16).remainder(model.config.vocab_size)[None]
    with torch.no_grad():
        return model(tokens, labels=tokens).loss.item()


if len(sys.argv) == 3 and sys.argv[1] == "--check":
    print(f"{loss_of(sys.argv[2]):.6f}")
    sys.exit()

torch.set_grad_enabled(False)
for name, (family, options) in MODELS.items():
    config = transformers.AutoConfig.for_model(family, **options)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    fill(model)
    tokens = torch.from_numpy(((drawn("tokens", (2, 24)) + 1) / 2 * config.vocab_size).astype("int64"))
    result = model(tokens, output_hidden_states=True)
    steps = model.generate(tokens[:1, :6], max_new_tokens=GREEDY, do_sample=False, output_logits=True,
                           return_dict_in_generate=True)
    top = torch.stack(steps.logits).topk(2).values
    print(f"{name}: logits up to {result.logits.abs().max():.2f}, least lead of a greedy token "
          f"{(top[..., 0] - top[..., 1]).min():.4f}, distinct {len(set(steps.sequences[0, 6:].tolist()))}")
    rows = slice(None) if config.hidden_size < 100 else slice(-1, None)  # of a wide one the last position
    columns = slice(None) if config.vocab_size < 100 else slice(0, 256)
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.torch.save_file({
        "tokens": tokens.to(torch.int32), "greedy": steps.sequences[0, 6:].to(torch.int32),
        "logits": result.logits[:, rows, columns].contiguous(),
        "first": result.hidden_states[1][:, rows].contiguous(),
        "last": result.hidden_states[-1][:, rows].contiguous(),
    }, folder / "expected.safetensors", {"transformers": transformers.__version__, "torch": torch.__version__})
    config.save_pretrained(folder)
