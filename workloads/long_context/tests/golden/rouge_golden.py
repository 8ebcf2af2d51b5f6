#!/usr/bin/env python3
"""Prints ROUGE-L and ROUGE-Lsum by Google's rouge-score (pip install rouge-score), for
workloads/long_context/tests/test_scores.cpp."""
from rouge_score import rouge_scorer

PAIRS = [
    ("the quick brown fox jumps over the dog\nit was quick, very quick",
     "a quick fox jumped over a lazy dog.\nThe dog was not amused; the fox was quick"),
    ("It's 3.5 times as fast\nand smaller by half\nand half",
     "Smaller by half, and 3.5 times as fast\nhalf and half"),
    ("a b c d\nb c d e\na a b", "a b a\nd c b a\ne e"),
]

scorer = rouge_scorer.RougeScorer(["rougeL", "rougeLsum"], use_stemmer=False)
for prediction, reference in PAIRS:
    scores = scorer.score(reference, prediction)
    print(f"{prediction!r} {reference!r} {scores['rougeL'].fmeasure:.12f} {scores['rougeLsum'].fmeasure:.12f}")
