"""Of tools/campaigns/learning.py: latents beside text, and beside text that is cut to as many tokens; check 18 of the
specification, for the model of byte pairs alone and, in long cases, for both models."""

_CONFIGS = "workloads/latentwire/configs/"
CASES = [{"name": f"latentwire smoke, key {key}", "config": _CONFIGS + "latentwire-smoke.yaml",
          "before": [["latentwire", "prepare", "--model", "bpe"]], "settings": [f"run.seed={key}"], "most_seconds": 180}
         for key in (1, 2, 3)]
CASES += [{"name": f"latentwire ci, key {key}", "config": _CONFIGS + "latentwire-ci.yaml", "long": True,
           "before": [["latentwire", "prepare"]], "settings": [f"run.seed={key}"], "most_seconds": 1200}
          for key in (1, 2, 3)]
EVALUATION = ["--prompts", "1000", "--budget", "8", "--budget", "16"]
LEAST = {"bpe": 0.50, "bytes": 0.40}  # of both models together
MOST_LOST = {8: 0.01, 4: 0.03}  # by a wire of so many bits
MOST_LOST_JOINTLY = 0.02


def of_one(match):
    """What is wrong with a receiver that was trained alone."""
    faults = []
    if match["latent"] < 0.20:
        faults.append(f"latent EM {match['latent']:.3f}, not 0.20")
    for other in ("head", "question-first"):
        if match["latent"] < 3 * match[other]:
            faults.append(f"latent EM {match['latent']:.3f} is not 3 times that of {other}, {match[other]:.3f}")
    return faults


def of_several(name, match, bits):
    """What is wrong with one of several receivers."""
    faults = []
    if match["latent"] < LEAST[name]:
        faults.append(f"{name}: latent EM {match['latent']:.3f}, not {LEAST[name]}")
    if match["latent"] <= match["question-first 16"]:
        faults.append(f"{name}: latent EM {match['latent']:.3f}, question-first in 16 tokens {match['question-first 16']:.3f}")
    for count, most in MOST_LOST.items():
        if match["latent"] - bits[count] > most + 1e-9:
            faults.append(f"{name}: {count} bits lose {match['latent'] - bits[count]:.3f} EM, {most} are allowed")
    return faults


def judge(report):
    """The figures that are kept, and what is wrong."""
    figures, faults, receivers = {"step": report["step"], "prompts": report["prompts"]}, [], report["receivers"]
    for receiver in receivers:
        systems = receiver["systems"]
        match = {name: system["exact_match"] for name, system in systems.items()}
        bits = {each["bits"]: each["exact_match"] for each in receiver["bits"]}
        if receiver["name"] == "bpe" and match["text"] < 0.95:
            faults.append(f"text EM {match['text']:.3f}, not 0.95")
        faults += of_one(match) if len(receivers) == 1 else of_several(receiver["name"], match, bits)
        figures[receiver["name"]] = {
            "exact_match": {name: round(value, 4) for name, value in match.items()},
            "nats_per_token": {name: round(system["nats_per_token"], 4) for name, system in systems.items()},
            "exact_match_by_bits": {str(count): round(value, 4) for count, value in bits.items()}}
    if len(receivers) > 1:
        joint, best = report["joint"]["exact_match"], max(r["systems"]["latent"]["exact_match"] for r in receivers)
        figures["joint"] = {name: round(report["joint"][name], 4)
                            for name in ("exact_match", "agreement", "oracle_exact_match")}
        if best - joint > MOST_LOST_JOINTLY + 1e-9:
            faults.append(f"joint rescoring EM {joint:.3f}, the better receiver {best:.3f}")
    return figures, faults
