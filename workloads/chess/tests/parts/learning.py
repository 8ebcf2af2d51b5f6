"""Of tools/campaigns/learning.py: 1,000 positions that were held out, before rewards and behind a hundred steps by them; the
control is the same with rewards dealt out anew within each group."""

_CONFIGS = "workloads/chess/configs/"
_DATA = "data.validation_fraction=0.025"
COMMAND = ["chess", "eval"]
EVALUATION = ["--records", "1000"]


def _case(key, control):
    warm = f"chess-warm-{key}"
    train = ["train", "{root}/" + _CONFIGS + "chess-warmup-xs.yaml", f"run.dir={warm}", f"run.seed={key}", _DATA]
    return {"name": f"chess grpo, key {key}" + (", shuffled" if control else ""), "config": _CONFIGS + "chess-grpo-xs.yaml",
            "before": [train] if not control else [], "beside": warm, "control": control, "most_seconds": 720,
            "settings": [f"run.seed={key}", _DATA, f"model.initialize_from={warm}",
                         *(["reward.control=shuffled"] if control else [])]}


CASES = [_case(1, False), _case(1, True), _case(2, False), _case(3, False)]


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
    names = ("legal_best", "legal_moves", "format", "reward", "best_move", "top_moves", "distinct_best")
    greedy = report["answers"][0]["policy"]
    return {"rise": round(rise, 4), "answers": policy["answers"],
            "before": {name: round(start[name], 4) for name in names},
            "behind": {name: round(policy[name], 4) for name in names},
            "greedy": {name: round(greedy[name], 4) for name in names}}, faults
