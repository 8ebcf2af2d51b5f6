"""Of tools/campaigns/support/two_builds.py."""

_RECORDS = ["chess.records=300", "chess.truth=search:1", "data.validation_fraction=0.1"]
_SMALL = [*_RECORDS, "model.layers=1", "model.width=32", "model.heads=2", "rollout.prompts=2", "rollout.samples=2",
          "engine.accumulate=1"]

SMALLER = {"chess-warmup-xs": _RECORDS,
           **{f"chess-grpo-{size}": _SMALL for size in ["xs", "s", "m", "124m"]}}
MADE_UP = list(SMALLER)
NO_TEXT = MADE_UP
