"""Of tools/campaigns/learning.py: surfaces of 2,000 pairs that were held out, of three corpora."""

CASES = [{"name": f"energy flow, corpus {key}", "config": "workloads/energy_flow/configs/energy-learn.yaml",
          "settings": [f"data.corpus_key={key}"], "most_seconds": 1800} for key in (42, 43, 44)]
EVALUATION = ["--pairs", "2000", "--stop-scope", "sample"]


def judge(report):
    """The figures that are kept, and what is wrong: the model must be better than the input's own surface and than the mean
    of the training targets, by intervals that do not overlap and by those of the paired differences."""
    error = report["error"]
    faults = []
    for other, difference in (("input", "model_minus_input"), ("training_mean", "model_minus_mean")):
        if not error[difference]["high"] < 0:
            faults.append(f"{difference}: the interval ends at {error[difference]['high']:.5f}, not below 0")
        if not error["model"]["high"] < error[other]["low"]:
            faults.append(f"the intervals of model and {other} overlap")
    if report["flows"]["unaccounted"] != 0:
        faults.append(f"{report['flows']['unaccounted']} flows are unaccounted for")
    kept = {name: {key: round(value, 6) for key, value in interval.items()} for name, interval in error.items()}
    return {"step": report["step"], "pairs": report["pairs"], "error": kept,
            "cosine": {name: round(value["mean"], 4) for name, value in report["cosine"].items()},
            "steps": report["steps"], "completed": report["flows"]["completed"]}, faults
