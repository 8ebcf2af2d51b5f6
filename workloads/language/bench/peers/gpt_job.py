"""What the peers' scripts of a GPT's job share: their options."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "bench/peers"))
import peer_job  # noqa: E402

DEFAULTS = {
    "threads": 2, "seed": 1, "precision": "fp32",  # or bf16: products in bf16, parameters and optimiser in fp32
    "batch": 12, "context": 64, "layers": 4, "heads": 4, "width": 128, "bias": 0, "tie_head": 1,
    "activation": "gelu", "vocabulary": 0, "dropout": 0.0,
    "steps": 2000, "warmup": 100, "rate": 1e-3, "minimum_rate": 1e-4,
    "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "decay": 0.1, "clip": 1.0,
    "share": "",  # safetensors of initial parameters, first batch and tokens, by bench_gpt_step --share
}
CHOICES = {"precision": ("fp32", "bf16"), "activation": ("gelu", "gelu_tanh")}


def options(document, more_defaults=None, more_choices=None):
    """(TEXT or "-", options) of the command line; ends the program with the document where it is wrong."""
    defaults = {**DEFAULTS, **(more_defaults or {})}
    if len(sys.argv) < 2 or "=" in sys.argv[1]:
        sys.exit(document)
    return sys.argv[1], peer_job.parse(sys.argv[2:], defaults, {**CHOICES, **(more_choices or {})})
