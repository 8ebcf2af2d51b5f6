"""Of tools/campaigns/resident_memory.py."""

CONFIG = "configs/latentwire-smoke.yaml"
READS_TEXT = False
RECEIVER = "receivers.folders=[bpe=random:bpe]"
JOBS = [
    ("latentwire", [RECEIVER, "train.batch_size=8", "data.validation_prompts=16"]),
    ("latentwire, accumulates, in bf16, with a teacher",
     [RECEIVER, "train.batch_size=8", "data.validation_prompts=16", "engine.accumulate=2", "engine.precision=bf16",
      "loss.distillation_weight=1"]),
]
