"""Token ids of 10,000 lines, by the Python packages tokenizers and tiktoken, for the settings of each family.

Needs tokenizers, tiktoken, unicodedata2 and xxhash. With --keep it trains the vocabularies and writes to
tests/data/golden/families/:

    gpt2.json, llama3.json, qwen2.json, smollm.json   small vocabularies, as `tokenizers` writes them
    ranks.tiktoken       the tokens of llama3.json that merges make, as a rank file
    lines.json.gz        the lines, as a list of texts
    hashes.json          xxHash64 of the ids (int32, little-endian) of each 500 lines, for each vocabulary and for GPT-2's
                         of ../shared/data, and ids of a few lines in full; the same of the words' lengths in bytes, which
                         ids of a small vocabulary do not tell

Without --keep the files that are there are compared with what the packages say. Where both packages can express a
setting they must agree, else nothing is written. Lines are made of words of every block of Unicode, of texts, and of
pieces that tokenizers get wrong. A line whose normal form C in the package tokenizers (whose tables are older than
Unicode 10) is not that of Unicode 16 is replaced by another, and counted.
"""
import array
import base64
import gzip
import json
import random

import tiktoken
import tokenizers
import unicodedata2 as unicode
import xxhash
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
# Digits one by one, and GPT-2's expression on what stands between, as one: white space before a digit ends a text.
SMOLLM = r"\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"
NEWER_DIGITS = {*map(chr, range(0x11DE0, 0x11DEA)), *map(chr, range(0x16FF4, 0x16FF7))}
LINES, GROUP = 10_000, 500

SPECIAL = {
    "gpt2": ["<|endoftext|>"],
    "llama3": ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>",
               "<|eot_id|>", "<|python_tag|>"],
    "qwen2": ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>"],
    "smollm": ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<file_sep>"],
}
# Not special, and with the flags that change what is taken.
ADDED = [AddedToken("<tool_call>", normalized=False), AddedToken("<tool_call>\n", normalized=False),
         AddedToken("<left>", normalized=False, lstrip=True), AddedToken("<both>", normalized=True, lstrip=True, rstrip=True),
         AddedToken("caf\u00e9_", normalized=True)]

TEXTS = """The lighthouse keeper counted 42 ships before the fog rolled in; it's what THEY'VE always done, ISN'T IT?
Der Fluß trägt schöne Kähne über die Brücke, während die Vögel singen. Straße, Größe, Äpfel.
Le garçon a mangé une pêche près de l'hôtel où naquit son père. L'été, à Noël, c'est déjà ça.
Съешь же ещё этих мягких французских булок, да выпей чаю. В чащах юга жил бы цитрус?
敏捷的棕色狐狸跳过了懒狗。春天来了,花儿都开了。天地玄黄,宇宙洪荒。
素早い茶色の狐がのろまな犬を飛び越える。カタカナも少し。ガギグゲゴ パピプペポ
빠른 갈색 여우가 게으른 개를 뛰어넘는다. 대한민국의 국민은 법 앞에 평등하다.
הנה שועל חום מהיר, שָׁלוֹם עֲלֵיכֶם. وهذا ثعلب بني سريع، السَّلَامُ عَلَيْكُم.
हिन्दी में लिखा हुआ एक वाक्य। क़िला, ज़रूर, फ़र्क। বাংলা ভাষায় একটি বাক্য। தமிழில் ஒரு வாக்கியம்.
ภาษาไทยเขียนติดกันโดยไม่เว้นวรรค ພາສາລາວ မြန်မာဘာသာ ភាសាខ្មែរ
Tiếng Việt có nhiều dấu: Đường phố, Nguyễn, ưỡn ẹo. Türkçe İstanbul'da ışık. Íslenska þægð.
Ελληνικά: ὦ ἄνδρες Ἀθηναῖοι, τὸ μὲν οὖν. ქართული ენა. Հայերեն լեզու. አማርኛ ቋንቋ።
def total(items):\\n    return sum(item.price * 1.5 for item in items)  # 100% of it
int main(void) {\\r\\n\\tprintf("%d\\\\n", 0x1F600);\\r\\n\\treturn 0;\\r\\n}\\r\\n
{"json": [1, 22, 333, 4444, 55555, null, true], "text": "a\\\\u00e9b"}
👩‍👩‍👧‍👦 🇪🇺 🏳️‍🌈 👍🏽 ❤️ 1️⃣ ✍🏿 😀😃😄 ©™ → ∀x∈ℝ: ⌈x⌉ = −⌊−x⌋ ½ ² Ⅻ ① 〇""".replace("\\n", "\n").replace(
    "\\r", "\r").replace("\\t", "\t").splitlines()
PIECES = ["'s", "'S", "'\u017f", "'T", "'Re", "'vE", "'LL", "'m", "'D", "'", "''", "\u2019s", " ", "  ", "   ", "\t", "\n", "\n\n",
          "\r\n", "\r\n\r\n", " \n", "\n ", " \r\n \t", "\u00a0", "\u3000", "\u2003\u2003", "\u0085", "\u2028", "\u200b", "\ufeff",
          "\x00", "\x07", "\x1b[0m", "\x1f", "\x7f", "0", "12", "123", "1234", "12345678901234", "3.14", "1,000,000", "\u0967\u0968\u0969\u096a",
          "\u00b2\u00bd", "e\u0301", "\u00e9", "\u1100\u1161\u11a8", "\uac01", "\u0300", "A\u030a\u0323", "\u212b", "\u2126", "\u0958", "\ufb1d",
          "caf\u00e9_", "cafe\u0301_", "!", "!!!", "...", "-" * 9, "=" * 40, "a" * 70, " " * 90, "\n" * 20, "<tool_call>", "<left>", "<both>",
          "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|begin_of_text|>", "<|im_", "<|", "the", "Hello", "WORLD", "x",
          "\U00011de3", "\U00016ff5", "\U0001f600", "\ufffd", "\U0010fffd", "\ue000", "http://a.b/c?d=%20#e"]


def blocks():
    """Runs of assigned characters of one general kind, 128 at most: every script comes up."""
    found, run = [], []
    for code in range(0x20, 0x33480):
        if unicode.category(chr(code)) in ("Cn", "Cs", "Co") or len(run) == 128:
            if len(run) > 3:
                found.append(run)
            run = []
        if unicode.category(chr(code)) not in ("Cn", "Cs", "Co"):
            run.append(chr(code))
    return found


def make_lines():
    random.seed(24)
    words = [text.split(" ") for text in TEXTS]
    ranges = blocks()
    form = normalizers.NFC()
    made, replaced = [], 0
    while len(made) < LINES:
        parts = []
        for _ in range(random.randint(1, 4)):
            kind = random.random()
            if kind < 0.45:
                text = random.choice(words)
                first = random.randrange(len(text))
                parts.append(" ".join(text[first:first + random.randint(1, 5)]))
            elif kind < 0.7:
                parts.append(random.choice(PIECES))
            elif kind < 0.86:
                block = random.choice(ranges)
                parts.append("".join(random.choice(block) for _ in range(random.randint(1, 6))))
            else:
                parts.append(random.choice([" ", "", "\n", str(random.randrange(10 ** random.randint(1, 9)))]))
        line = "".join(parts)
        if random.random() < 0.2:
            line = unicode.normalize(random.choice(["NFD", "NFC"]), line)
        if form.normalize_str(line) != unicode.normalize("NFC", line):
            replaced += 1
            continue
        made.append(line)
    return made, replaced


def byte_of_character():
    shown = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    hidden = [b for b in range(256) if b not in shown]
    return {**{chr(b): b for b in shown}, **{chr(256 + i): b for i, b in enumerate(hidden)}}


def byte_level(splits):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=splits)


def pipeline(family, model):
    made = Tokenizer(model)
    made.decoder = decoders.ByteLevel()
    split = lambda expression: pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(expression), "isolated"), byte_level(False)])
    if family == "gpt2":
        made.pre_tokenizer = byte_level(True)
    elif family == "llama3":
        made.pre_tokenizer = split(LLAMA3)
    elif family == "qwen2":
        made.normalizer = normalizers.NFC()
        made.pre_tokenizer = split(QWEN2)
        made.post_processor = processors.ByteLevel(trim_offsets=False)
    else:
        made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)])
    return made


def train(family, lines):
    made = pipeline(family, models.BPE())
    made.train_from_iterator(TEXTS * 4 + lines, trainers.BpeTrainer(
        vocab_size=1500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    if family == "llama3":  # words that no merge makes: only ignore_merges finds them
        state = json.loads(made.to_str())["model"]
        for word in ("\u0120lighthouse", "keeper", "123", "\u0120THEY"):
            state["vocab"].setdefault(word, len(state["vocab"]))
        merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in state["merges"]]
        made = pipeline(family, models.BPE(vocab=state["vocab"], merges=merges, ignore_merges=True))
    made.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIAL[family]])
    if family in ("llama3", "qwen2"):
        made.add_tokens(ADDED)
    if family == "llama3":
        begin = "<|begin_of_text|>"
        made.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
            single=f"{begin}:0 $A:0", pair=f"{begin}:0 $A:0 {begin}:1 $B:1",
            special_tokens=[(begin, made.token_to_id(begin))])])
    return made


def tokens_of(made):
    """Bytes and ids of what the merges make, and the special tokens of no merge."""
    state = json.loads(made.to_str())
    table = byte_of_character()
    added = {token["content"]: token["id"] for token in state["added_tokens"]}
    merged = {"".join(m) if isinstance(m, list) else m.replace(" ", "") for m in state["model"]["merges"]}
    ranks = {bytes(table[c] for c in text): number for text, number in state["model"]["vocab"].items()
             if text not in added and (len(text) == 1 or text in merged)}
    return ranks, added


def in_tiktoken(family, made):
    ranks, added = tokens_of(made)
    expression = {"gpt2": GPT2, "qwen2": QWEN2, "smollm": SMOLLM}[family]
    special = {text: number for text, number in added.items() if text in SPECIAL[family]}
    peer = tiktoken.Encoding(family, pat_str=expression, mergeable_ranks=ranks, special_tokens=special)
    form = (lambda text: unicode.normalize("NFC", text)) if family == "qwen2" else (lambda text: text)
    return lambda text: peer.encode(form(text), allowed_special="all")


def from_ranks(ranks):
    """A rank file in both packages: merges of every pair that makes a token, by its rank."""
    character = {byte: c for c, byte in byte_of_character().items()}
    shown = lambda token: "".join(character[b] for b in token)
    merges = [(shown(token[:i]), shown(token[i:])) for token in sorted(ranks, key=ranks.get)
              for i in sorted(range(1, len(token)), key=lambda i: (ranks.get(token[:i], 0), ranks.get(token[i:], 0)))
              if token[:i] in ranks and token[i:] in ranks]
    vocabulary = {shown(token): number for token, number in ranks.items()}
    made = pipeline("llama3", models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    peer = tiktoken.Encoding("ranks", pat_str=LLAMA3, mergeable_ranks=ranks, special_tokens={})
    return (lambda text: made.encode(text, add_special_tokens=False).ids), (lambda text: peer.encode(text, disallowed_special=()))


def word_lengths(family):
    """The lengths of the words of a line, as the package splits it."""
    split = lambda expression: pre_tokenizers.Split(Regex(expression), "isolated").pre_tokenize_str
    whole = split({"gpt2": GPT2, "llama3": LLAMA3, "qwen2": QWEN2, "smollm": GPT2}[family])
    digits = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str
    parts = (lambda text: [part for part, _ in digits(text)]) if family == "smollm" else (lambda text: [text])
    return lambda text: [len(word.encode()) for part in parts(text) for word, _ in whole(part)]


def hashes(all_ids):
    joined = (array.array("i", (i for ids in all_ids[at:at + GROUP] for i in ids)) for at in range(0, LINES, GROUP))
    return [xxhash.xxh64(group.tobytes()).hexdigest() for group in joined]


def run(root, build, keep):
    folder = root / "tests/data/golden/families"
    folder.mkdir(parents=True, exist_ok=True)
    if keep:
        lines, replaced = make_lines()
        packed = json.dumps(lines, ensure_ascii=False, separators=(",", ":")).encode()
        (folder / "lines.json.gz").write_bytes(gzip.compress(packed, mtime=0))
        for family in SPECIAL:
            (folder / f"{family}.json").write_text(train(family, lines[:4000]).to_str(pretty=False), encoding="utf-8")
    else:
        lines, replaced = json.loads(gzip.decompress((folder / "lines.json.gz").read_bytes())), None
    differences, golden, compared = [], {"group": GROUP, "few": {}}, 0

    def compare(name, first, second, applies=lambda text: True):
        nonlocal compared
        ids = [first(text) for text in lines]
        both = 0
        for text, known in zip(lines, ids):
            if second and applies(text):
                both += 1
                if second(text) != known:
                    differences.append(f"{name}: {text!r}")
        compared += len(lines)
        golden[name] = hashes(ids)
        golden["few"][name] = ids[:20]
        return {"lines": len(lines), "by_both": both, "tokens": sum(map(len, ids))}

    figures = {}
    for family in SPECIAL:
        golden[f"{family} words"] = hashes(list(map(word_lengths(family), lines)))
        made = Tokenizer.from_file(str(folder / f"{family}.json"))
        ours = lambda text: made.encode(text, add_special_tokens=False).ids
        flagged = [token.content for token in ADDED] if family == "qwen2" else []
        flagged.append("cafe\u0301_")
        applies = lambda text: not any(t in text for t in flagged) and not (family == "smollm" and NEWER_DIGITS & set(text))
        figures[family] = compare(family, ours, None if family == "llama3" else in_tiktoken(family, made), applies)
        if family == "llama3":
            ranks, _ = tokens_of(made)
            ranks = {token: number for number, token in enumerate(sorted(ranks, key=ranks.get))}
            text = "".join(f"{base64.b64encode(token).decode()} {number}\n" for token, number in ranks.items())
            if keep:
                (folder / "ranks.tiktoken").write_text(text)
            figures["ranks"] = compare("ranks", *from_ranks(ranks))
    shared = root.parent / "shared/data/gpt2-tokenizer"
    if shared.exists():
        large = pipeline("gpt2", models.BPE.from_file(str(shared / "vocab.json"), str(shared / "merges.txt")))
        large.add_special_tokens([AddedToken("<|endoftext|>", normalized=False)])
        figures["gpt2_published"] = compare("gpt2_published", lambda text: large.encode(text, add_special_tokens=False).ids,
                                            in_tiktoken("gpt2", large))
    path = folder / "hashes.json"
    if keep and not differences:
        path.write_text(json.dumps(golden, indent=None, separators=(",", ":")).replace("],", "],\n") + "\n")
    elif not keep and json.loads(path.read_text()) != golden:
        differences.append("hashes.json is not what the packages say")
    return {"compared": compared, "differences": differences[:20], "lines_replaced": replaced, "figures": figures,
            "tokenizers": tokenizers.__version__, "tiktoken": tiktoken.__version__}
