"""Of tools/campaigns/support/two_builds.py."""

import pathlib

CONFIGS = [path.stem for path in (pathlib.Path(__file__).resolve().parents[2] / "configs").glob("*.yaml")]
SMALLER = {name: ["train.batch_size=4"] for name in CONFIGS if name.startswith("passkey")}
MADE_UP = CONFIGS
