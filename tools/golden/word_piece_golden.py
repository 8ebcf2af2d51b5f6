#!/usr/bin/env python3
"""Writes tests/data/golden/word_piece/: a small WordPiece vocabulary trained by `tokenizers`, and encodings by it.

Usage: tools/golden/word_piece_golden.py

Needs the Python package tokenizers (0.23.3 made the files that are kept).

    tokenizer.json      the vocabulary (700 pieces), uncased, as `tokenizers` writes it
    cased.json          the same pieces, cased
    vocab.txt           the pieces, a line each
    encodings.json      [[text, [ids], [ids by cased.json]], ...], without [CLS] and [SEP]
"""
import json
import pathlib
import random

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/data/golden/word_piece"
CORPUS = ROOT / "tests/data/golden/corpus.txt"
PIECES = 700
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

DESIGNED = """
A quiet woman sits under the river.
Hello, world! It's 3.14 (isn't it?)...
Crème brûlée, Ångström, naïve café, ÜBER straße, İstanbul, ΣΊΣΥΦΟΣ, Ёлка
敏捷的棕色狐狸 and カタカナ and 빠른 갈색 여우 mixed한글text
tabs\tand\u00a0no-break\u2003spaces\u200bzero\u200dwidth\u00adsoft
controls\u0000\u0007\u001b[31m and \ufffd replaced, line\u2028separator \u0085next
e\u0301 n\u0303 o\u0308\u0323 a\u0308\u0301 combining, \u1e9b\u0323
[CLS] the lighthouse [SEP] keeper [MASK] [UNKNOWN] [cls]
$100 + 20% = £120; a_b-c/d\\e@f#g^h~`i|j<k>l{m}n
¿Qué? «Oui» „Ja“ ‚nein‘ … — – † ‡ § ¶ • ′ ″
😀 emoji 👩\u200d👩\u200d👧 flags 🇩🇪 and math 𝔄𝔅 ℌ ½ ² Ⅷ
\u0301leading mark \U0001d165 \u302e
""".strip("\n").split("\n")
DESIGNED += ["", " ", "a", "x" * 100, "x" * 101, "é" * 100, "é" * 101, "lighthouse" * 11]
ALPHABETS = ["abcdefghij ", "the quick brown FOX. ", "éèêñüß ÀÇ", "狐狸 abc", "각힣가 ᄀ", "\u0301\u0308ae ", "-–—_*'\" a",
             "\u00ad\u200b\u0000\t\n a"]


def tokenizer(lowercase, vocabulary=None):
    model = models.WordPiece(vocabulary, unk_token="[UNK]") if vocabulary else models.WordPiece(unk_token="[UNK]")
    made = Tokenizer(model)
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    return made


def texts():
    draws = random.Random(7)
    yield from DESIGNED
    yield from CORPUS.read_text().splitlines()
    for _ in range(200):
        alphabet = draws.choice(ALPHABETS)
        yield "".join(draws.choice(alphabet) for _ in range(draws.randint(1, 30)))
    for _ in range(200):
        codes = [draws.choice([draws.randrange(0x20, 0x3000), draws.randrange(0x20, 0xD800), draws.randrange(0xE000, 0x20000)])
                 for _ in range(draws.randint(1, 12))]
        yield "".join(map(chr, (code for code in codes if not 0xD800 <= code < 0xE000)))


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    uncased = tokenizer(True)
    uncased.train([str(CORPUS)], trainers.WordPieceTrainer(vocab_size=PIECES, special_tokens=SPECIAL, show_progress=False))
    vocabulary = uncased.get_vocab()
    cased = tokenizer(False, vocabulary)
    cased.add_special_tokens(SPECIAL)
    uncased.save(str(FOLDER / "tokenizer.json"))
    cased.save(str(FOLDER / "cased.json"))
    pieces = sorted(vocabulary, key=vocabulary.get)
    (FOLDER / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces))
    encodings = [[text, uncased.encode(text, add_special_tokens=False).ids, cased.encode(text, add_special_tokens=False).ids]
                 for text in texts()]
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in encodings)
    (FOLDER / "encodings.json").write_text(f"[{lines}]\n")


if __name__ == "__main__":
    main()
