"""What the peers' scripts of a job on texts share: their data."""
import sys

import numpy


class Data:
    """Windows to train on: of the shared tokens, of a text by its characters, or of random tokens."""

    def __init__(self, text, shared, o):
        self.context, self.batch = o["context"], o["batch"]
        self.draws = numpy.random.default_rng(o["seed"])
        self.tokens = self.held_out = None
        self.vocabulary = o["vocabulary"]
        for table in ("token_embedding.weight", "embed.weight"):
            if table in shared:
                self.vocabulary = len(shared[table])
        self.kinds = self.vocabulary
        if "tokens" in shared:
            self.tokens = shared["tokens"].astype(numpy.int64)
        elif text != "-":
            self.read_text(text)
        elif self.vocabulary == 0:
            sys.exit("without a text the vocabulary must be given")
        # The first batch is everybody's, so that the losses of the first steps must agree.
        self.first = (shared["inputs"].astype(numpy.int64), shared["targets"].astype(numpy.int64)) \
            if "inputs" in shared else None

    def read_text(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        ids = {character: i for i, character in enumerate(sorted(set(text)))}
        tokens = numpy.array([ids[character] for character in text])
        part = len(tokens) * 9 // 10
        self.tokens, self.held_out = tokens[:part], tokens[part:]
        self.vocabulary = max(self.vocabulary, len(ids))

    def next(self):
        """i64 [B,T] inputs and targets."""
        if self.first is not None:
            first, self.first = self.first, None
            return first
        if self.tokens is None:
            windows = self.draws.integers(self.kinds, size=(self.batch, self.context + 1))
        else:
            starts = self.draws.integers(len(self.tokens) - self.context, size=(self.batch, 1))
            windows = self.tokens[starts + numpy.arange(self.context + 1)]
        return windows[:, :-1], windows[:, 1:]

    def held_out_windows(self):
        """i64 [N,T+1], side by side."""
        if self.held_out is None:
            sys.exit("evaluate needs a text")
        count = (len(self.held_out) - 1) // self.context
        return self.held_out[numpy.arange(count)[:, None] * self.context + numpy.arange(self.context + 1)]
