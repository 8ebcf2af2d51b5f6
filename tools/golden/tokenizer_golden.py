#!/usr/bin/env python3
"""Writes tests/data/golden/: a small byte-level BPE trained by `tokenizers`, and encodings of designed and random texts.

Usage: tools/golden/tokenizer_golden.py [GPT2_FOLDER]

Needs the Python packages tokenizers and tiktoken (0.23.3 and 0.14.0 made the files that are kept). Every encoding is
made by both; the script stops where they differ. GPT2_FOLDER holds GPT-2's vocab.json and merges.txt, default
../shared/data/gpt2-tokenizer beside the checkout; of it only encodings are written.

    corpus.txt          what the small vocabulary is trained on
    tokenizer.json      the small vocabulary (600 tokens and a special one), as `tokenizers` writes it
    vocab.json, merges.txt   the same in GPT-2's files
    encodings.json      [[text, [ids of the small vocabulary], [ids of GPT-2]], ...]
"""
import json
import pathlib
import random
import sys

import tiktoken
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/data/golden"
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
VOCABULARY = 600

SENTENCES = """The lighthouse keeper counted forty-two ships before the fog rolled in from the northern sea.
It's what they've always done, isn't it? We'll see; I'm sure you'd say he's right.
Numbers: 3.14159, 1,000,000 and 2^10 = 1024; in 1969 people walked on the Moon.
def total(items): return sum(item.price * item.count for item in items)
Der Fluß trägt schöne Kähne über die Brücke, während die Vögel singen.
Le garçon a mangé une pêche près de l'hôtel où naquit son père.
Съешь же ещё этих мягких французских булок, да выпей чаю.
敏捷的棕色狐狸跳过了懒狗。春天来了,花儿都开了。
素早い茶色の狐がのろまな犬を飛び越える。カタカナも少し。
빠른 갈색 여우가 게으른 개를 뛰어넘는다.
הנה שועל חום מהיר, وهذا ثعلب بني سريع.
    indented twice,\tthen tabbed,  spaced   apart    ever      wider.
""".splitlines()

DESIGNED = [
    "", " ", "  ", "   ", "\n", "\n\n", " \n", "\n ", "\t\t x", "a", " a", "  a", "a ", "a  ", "a  b", "a   b\n",
    "\r\n", "line\r\nline\r\n\r\n", "\u00a0", "a\u00a0b", "a \u00a0b", "\u3000全角\u3000", "\u2003em\u2003\u2003space",
    "\u0085next\u0085line", "\u2028\u2029", "\u200b zero\u200bwidth", "\ufeffbom", "\x00\x01\x1c\x1d\x1e\x1f\x7f",
    "it's", "it 's", "it''s", "'s", "''s", "IT'S", "we'll we've we're I'm I'd don't", "'ll'll", "'r 'v 'l", "'", "x'",
    "'re'", "rock'n'roll", "\u2019s", "hello world", "Hello, World!", "HelloWorld", "snake_case-kebab.dot", "!!!???...",
    "a1b2c3", "123456789", "12.5%", "½ ² ³ Ⅻ ⅷ ① 〇 ੧੨", "١٢٣ abc", "naïve café", "nai\u0308ve cafe\u0301",
    "\u0301combining first", "हिन्दी में लिखा", "ภาษาไทย", "සිංහල", "ქართული", "😀", "👩‍👩‍👧‍👦 family", "🇪🇺🏳️‍🌈", "𝕬𝖑𝖌𝖊𝖇𝖗𝖆 𝟙𝟚𝟛",
    "🅰🆎", "\U0010ffff\ue000", "日本語 テキスト。", "中文字符测试,标点。", "한국어", "שלום עולם", "مرحبا بالعالم",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abcabcabcabc" * 12, "-" * 70, "=" * 200, "ha" * 90, " " * 100, " " * 33 + "x", "\t" * 20 + "\n", "\n" * 50 + "end",
    "<|endoftext|>", "before<|endoftext|>after", "http://example.org/a?b=c&d=%20#e", "{\"json\": [1, null, true]}",
    "int main() {\n\treturn 0;\n}\n", "if (x != y) { z += \"q\\n\"; }  // done", "Ünïcödé ÀÉÎ ßſ ﬁ ŉ ĳ",
    "ʰʷ modifier", "ªº", "_‿⁀", "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋", "a\u00adb", "Ǆ ǅ ǆ", "ℵ₀", "꧁꧂ ꙮ", "\u1680ogham\u180e",
]


def random_texts(count):
    random.seed(20)
    pool = ("abcdefghij ABC 0123 '''  \n\t\r.,;!?-_\u00a0\u00e9\u00df\u0301\u0416\u4e2d\u3042\uac00\u0905\u0967\u2167"
            "\u00b2\u2003\u3000\u0085\U0001f600\U0001d7d8\u200d\ufffd")
    texts = []
    for _ in range(count):
        texts.append("".join(random.choice(pool) for _ in range(random.randint(1, 60))))
    for _ in range(count // 4):
        codes = (random.randrange(0x110000) for _ in range(random.randint(1, 20)))
        texts.append("".join(chr(c) for c in codes if not 0xD800 <= c < 0xE000))
    return texts


def corpus():
    random.seed(7)
    lines = []
    for _ in range(160):
        words = random.choice(SENTENCES).split(" ")
        first = random.randrange(len(words))
        lines.append(" ".join(words[first:first + random.randint(2, 12)]))
    return "\n".join(lines) + "\n"


def byte_of_character():
    table = {}
    following = 256
    for byte in range(256):
        shows = 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE
        table[chr(byte if shows else following)] = byte
        following += not shows
    return table


def in_tiktoken(vocabulary, special):
    table = byte_of_character()
    ranks = {bytes(table[c] for c in token): rank for token, rank in vocabulary.items() if token not in special}
    return tiktoken.Encoding("golden", pat_str=PATTERN, mergeable_ranks=ranks,
                             special_tokens={token: vocabulary[token] for token in special if token in vocabulary})


def byte_level(model):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def both(tokenizer, peer, text):
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    other = peer.encode(text, allowed_special="all")
    if ids != other:
        sys.exit(f"tokenizers and tiktoken differ on {text!r}:\n{ids}\n{other}")
    return ids


def main():
    gpt2 = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT.parent / "shared/data/gpt2-tokenizer")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "corpus.txt").write_text(corpus(), encoding="utf-8")

    small = byte_level(models.BPE())
    small.train([str(FOLDER / "corpus.txt")], trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    small.model.save(str(FOLDER))
    small.add_special_tokens([AddedToken("<|endoftext|>", normalized=False)])
    (FOLDER / "tokenizer.json").write_text(small.to_str(pretty=False), encoding="utf-8")

    large = byte_level(models.BPE.from_file(str(gpt2 / "vocab.json"), str(gpt2 / "merges.txt")))
    large.add_special_tokens([AddedToken("<|endoftext|>", normalized=False)])
    special = ["<|endoftext|>"]
    peers = [in_tiktoken(small.get_vocab(), special), in_tiktoken(large.get_vocab(), special)]
    rows = [[text, both(small, peers[0], text), both(large, peers[1], text)] for text in DESIGNED + random_texts(160)]
    (FOLDER / "encodings.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    print(f"{len(rows)} texts, {small.get_vocab_size()} and {large.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
