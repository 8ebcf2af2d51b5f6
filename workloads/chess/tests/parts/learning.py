"""Of tools/campaigns/learning.py: 1,000 positions that were held out, before rewards and behind a hundred steps by them; the
control is the same with rewards dealt out anew within each group. Moves are ranked by our own search, and where it says so by
Debian's stockfish, as the specification has it. The warm-up is the specification's, and steps by rewards have what lets legal moves
rise and answers stay different (bench/results/2026-11-30-chess-learning-stockfish.txt): 32 positions, a gain of the last norm
that learns 40 times as fast as the rest, which is how sharp answers are, and a bound on the way from the start."""

_CONFIGS = "workloads/chess/configs/"
_DATA = "data.validation_fraction=0.025"
_SPECIFIED_WARM_UP = ["optim.name=adamw", "optim.learning_rate=2e-3", "train.steps=2900", "engine.precision=bf16"]
_SHARPENING = ["rollout.prompts=32", "optim.learning_rate=1e-4",
               "optim.groups=[{match: final_norm.weight, learning_rate_multiplier: 40}]",
               "grpo.kl_target=0.03", "grpo.kl_controller=exponential", "engine.precision=bf16"]
COMMAND = ["chess", "eval"]
EVALUATION = ["--records", "1000"]


def _case(key, control=False, ranked_by=""):
    warm = f"chess-warm-{ranked_by}{key}"
    settings = [f"run.seed={key}", _DATA, *([f"chess.truth={ranked_by}:4"] if ranked_by else [])]
    train = ["train", "{root}/" + _CONFIGS + "chess-warmup-xs.yaml", f"run.dir={warm}", *settings, *_SPECIFIED_WARM_UP]
    return {"name": f"chess grpo, {ranked_by + ', ' if ranked_by else ''}key {key}" + (", shuffled" if control else ""),
            "config": _CONFIGS + "chess-grpo-xs.yaml", "before": [train] if not control else [], "counts_before": True,
            "beside": warm, "control": control, "most_seconds": 720,
            "settings": [*settings, f"model.initialize_from={warm}", *_SHARPENING,
                         *(["reward.control=shuffled"] if control else [])]}


CASES = [_case(1), _case(1, control=True), _case(2), _case(3), _case(1, ranked_by="stockfish"),
         _case(1, control=True, ranked_by="stockfish"), _case(2, ranked_by="stockfish"), _case(3, ranked_by="stockfish")]


def judge(report, before, case):
    """The figures that are kept, and what is wrong, of answers that are drawn."""
    policy, start = (each["answers"][1]["policy"] for each in (report, before))
    rise, faults = policy["legal_best"] - start["legal_best"], []
    if case["control"]:
        if rise > 0.03:
            faults.append(f"legal moves rise by {rise:.3f} with rewards that say nothing")
    else:
        if rise < 0.10:
            faults.append(f"legal moves rise by {rise:.3f}, not 0.10")
        if policy["format"] < 0.9:
            faults.append(f"{policy['format']:.3f} of the answers have the format, not 0.9")
        if policy["distinct_best"] < 0.7:
            faults.append(f"{policy['distinct_best']:.3f} of 200 best moves are different, not 0.7")
    names = ("legal_best", "legal_moves", "format", "reward", "best_move", "top_moves", "distinct_best")
    greedy = report["answers"][0]["policy"]
    return {"rise": round(rise, 4), "answers": policy["answers"],
            "before": {name: round(start[name], 4) for name in names},
            "behind": {name: round(policy[name], 4) for name in names},
            "greedy": {name: round(greedy[name], 4) for name in names}}, faults
