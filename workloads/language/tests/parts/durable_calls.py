"""Of tests/tools/durable_calls.py."""

FILES = {"gpt.yaml": "model: {name: gpt, layers: 1, heads: 2, width: 16, context: 8}\n"
                     "train: {steps: 2, batch_size: 4, sample_characters: 0}\nengine: {threads: 2}\n"}
BEFORE = [["train", "gpt.yaml", "data.path=text.txt", "run.dir=gpt"]]
COMMANDS = {"export": ["export", "gpt", "-o", "exported"]}
