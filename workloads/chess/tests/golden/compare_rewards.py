#!/usr/bin/env python3
"""Scores random answers by scheme W, once by `fullbore chess score` and once by the few lines below, and tells the largest
difference of any field.

Usage: compare_rewards.py FULLBORE [ANSWERS]

The lines below follow section 3 of the specification word for word, with its grammar as a regular expression, so that
they share nothing with the C++ but the truth that stands in the records. Legal moves are those of `fullbore chess moves`.
Exits with 1 where a field differs by more than 1e-9.
"""

import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

MOVE = r"[a-h][1-8][a-h][1-8][qrbn]?"
NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
SPACE = r"[ \t\n\r\f\v]+"
POLICY = re.compile(rf"M:((?:{SPACE}{MOVE})+){SPACE}E:((?:{SPACE}{NUMBER})+){SPACE}B:{SPACE}({MOVE})")
ARBITER = re.compile(rf"([^+]*/[^+]*)\+({NUMBER})\+([01])\+([01])\+?")


def score_policy(text, top, legal):
    match = POLICY.fullmatch(text.strip(" \t\n\r\f\v"))
    if not match:
        return {"format": False, "best": 0, "candidates": 0, "evals": 0, "reward": -0.3}
    moves, evals, best = match[1].split(), [float(word) for word in match[2].split()], match[3]
    ranks, truth = {move: i for i, (move, _) in enumerate(top)}, dict(top)
    if best in ranks:
        best_score = [1.0, 0.7, 0.7, 0.5, 0.5][ranks[best]]
    else:
        best_score = 0.2 if best in legal else 0.0
    candidates = len(set(moves) & set(ranks)) / max(len(top), len(moves))
    total, seen = 0.0, set()
    for i, move in enumerate(moves):
        if move in truth and move not in seen and i < len(evals):
            total += max(0.0, 1 - abs(evals[i] - truth[move]) / (1 + abs(truth[move])))
        seen.add(move)
    evals_score = total / max(len(top), len(moves), len(evals))
    raw = (4 * best_score + 2 + 1.5 * candidates + evals_score) / 8.5
    return {"format": True, "best": best_score, "candidates": candidates, "evals": evals_score,
            "reward": -0.3 + 1.3 * raw}


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        diagonal, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            diagonal, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, diagonal + (x != y))
    return row[-1]


def score_arbiter(text, truth):
    match = ARBITER.fullmatch(text.strip(" \t\n\r\f\v"))
    if not match:
        return {"format": False, "fen": 0, "flags": 0, "reward_score": 0, "reward": -0.3}
    fen, reward, terminated, truncated = truth.split("+")
    similarity = 1 - distance(match[1], fen) / max(len(match[1]), len(fen))
    fen_score = (math.exp(3 * similarity) - 1) / (math.exp(3) - 1)
    flags = ((match[3] == terminated) + (match[4] == truncated)) / 2
    error = abs(float(match[2]) - float(reward))
    reward_score = 1 if error < 0.01 else 0.7 if error < 0.1 else 0.4 if error < 0.3 else 0.1
    raw = (4 + 3 * fen_score + 2 * flags + reward_score) / 10
    return {"format": True, "fen": fen_score, "flags": flags, "reward_score": reward_score,
            "reward": -0.3 + 1.3 * raw}


def changed(text, draws):
    """The text with a few words or characters otherwise; sometimes none."""
    for _ in range(draws.randrange(4)):
        kind, words = draws.randrange(5), text.split(" ")
        if kind == 0:
            words.insert(draws.randrange(len(words) + 1), draws.choice(words))
        elif kind == 1 and len(words) > 1:
            del words[draws.randrange(len(words))]
        elif kind == 2:
            i, j = draws.randrange(len(words)), draws.randrange(len(words))
            words[i], words[j] = words[j], words[i]
        text = " ".join(words)
        if kind > 2 and text:
            at = draws.randrange(len(text))
            text = text[:at] + draws.choice("abcdefgh12345678-.+/ \t:MEBKQqx0") + text[at + 1:]
    return text


def main():
    binary, answers = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    draws = random.Random(1)

    def run(*words, text=None):
        return subprocess.run([binary, "chess", *words], input=text, capture_output=True, text=True, check=True).stdout

    with tempfile.TemporaryDirectory() as folder:
        records_path, answers_path, scores_path = (f"{folder}/{name}" for name in ("records", "answers", "scores"))
        run("prepare", "--recipe", "games", "--records", str(answers), "--truth", "search:1", "--out", records_path)
        records = [json.loads(line) for line in open(records_path)]
        asked = [json.loads(line) for line in
                 run("moves", "-", "--json", text="".join(record["fen"] + "\n" for record in records)).splitlines()]
        with open(answers_path, "w") as out:
            for record in records:
                record["answer"] = changed(record["completion"], draws)
                out.write(json.dumps(record) + "\n")
        run("score", answers_path, "--each", scores_path)
        worst, valid = 0.0, 0
        for record, moves, line in zip(records, asked, open(scores_path), strict=True):
            if record["task"] == "P":
                expected = score_policy("M:" + record["answer"], record["top"], set(moves["moves"]))
            else:
                expected = score_arbiter(record["answer"], record["completion"])
            scored = json.loads(line)
            valid += expected["format"]
            for field, value in expected.items():
                difference = abs(scored[field] - value)
                worst = max(worst, difference)
                if difference > 1e-9:
                    print(f"{field}: {scored[field]}, but {value} was expected: {json.dumps(record)}")
                    return 1
    print(f"{len(records)} answers, {valid} of them with the format: no field differs by more than {worst:.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
