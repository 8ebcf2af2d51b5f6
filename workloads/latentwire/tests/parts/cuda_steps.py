"""Of tools/campaigns/cuda_steps.py."""

import json


def write_questions(path):
    """512 to train on, which come again, so that what the teacher says of them is kept, and 64 held out."""
    with open(path, "w") as file:
        for i in range(576):
            windows = str(i * 37 % 91 + 2)
            file.write(json.dumps({"context": f"House {i} has {windows} windows and a red door.",
                                   "question": f"How many windows does house {i} have?", "answers": [windows]}) + "\n")


STEPS = [
    {"name": "latentwire", "config": "latentwire-smoke",
     "small": ["receivers.folders=[bpe=random:bpe]", "train.batch_size=1", "wire.width=16", "wire.layers=1", "wire.heads=2",
               "data.validation_prompts=2", "wire.slots=2", "wire.max_bytes=64"]},
    {"name": "latentwire-ref", "config": "latentwire-ref", "asked_milliseconds": 180,
     "full": ["receivers.folders=[llama=random:llama-3.1-8b]", "train.batch_size=64", "data.path={questions.jsonl}",
              "data.validation_prompts=64", "loss.teacher_cache=bf16"],
     "files": {"questions.jsonl": write_questions}},
]
