"""Of tests/tools/emulated_processor.py: a run on a text."""

import pathlib

ARGUMENTS = [str(pathlib.Path(__file__).resolve().parents[2] / "configs/default.yaml"),
             "train.steps=2", "train.batch_size=2", "train.sample_characters=4", "model.layers=1", "model.width=32",
             "model.heads=2", "model.context=16", "engine.cache=false"]
