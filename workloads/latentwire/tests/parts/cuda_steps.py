"""Of tools/campaigns/cuda_steps.py."""

STEPS = [
    {"name": "latentwire", "config": "latentwire-smoke",
     "small": ["receivers.folders=[bpe=random:bpe]", "train.batch_size=1", "wire.width=16", "wire.layers=1", "wire.heads=2",
               "data.validation_prompts=2", "wire.slots=2", "wire.max_bytes=64"]},
    {"name": "latentwire-ref", "config": "latentwire-ref", "asked_milliseconds": 180,
     "full": ["receivers.folders=[llama=random:llama-3.1-8b]", "train.batch_size=64"]},
]
