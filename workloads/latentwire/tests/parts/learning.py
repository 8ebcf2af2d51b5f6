"""Of tools/campaigns/learning.py: latents for the model of byte pairs, beside text that is cut to as many tokens."""

CASES = [{"name": "latentwire smoke", "config": "workloads/latentwire/configs/latentwire-smoke.yaml",
          "before": [["latentwire", "prepare", "--model", "bpe"]], "settings": [], "most_seconds": 180}]
EVALUATION = ["--prompts", "1000"]


def judge(report):
    """The figures that are kept, and what is wrong: check 18 of the specification."""
    receiver = report["receivers"][0]
    match = {name: system["exact_match"] for name, system in receiver["systems"].items()}
    faults = []
    if match["text"] < 0.95:
        faults.append(f"text EM {match['text']:.3f}, not 0.95")
    if match["latent"] < 0.20:
        faults.append(f"latent EM {match['latent']:.3f}, not 0.20")
    for other in ("head", "question-first"):
        if match["latent"] < 3 * match[other]:
            faults.append(f"latent EM {match['latent']:.3f} is not 3 times that of {other}, {match[other]:.3f}")
    return {"step": report["step"], "prompts": report["prompts"],
            "exact_match": {name: round(value, 4) for name, value in match.items()},
            "nats_per_token": {name: round(system["nats_per_token"], 4)
                               for name, system in receiver["systems"].items()},
            "exact_match_by_bits": {str(each["bits"]): round(each["exact_match"], 4) for each in receiver["bits"]}}, faults
