#!/usr/bin/env python3
"""Writes workloads/latentwire/tests/golden/bert: a small BERT with random weights as Hugging Face's transformers saves it,
and expected.safetensors: tokens of two texts as its tokenizer has them, padded, their lengths, and the states of the last
layer, computed in double precision. Needs: pip install torch transformers tokenizers.
"""
import pathlib

import tokenizers
import torch
import transformers
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent / "bert"
TEXTS = ["The day is Monday.", "What is the price?"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "day", "is", "mon", "##day", "what", "price", ".", "?", "pr",
          "##ice", "a"]

torch.manual_seed(0)
torch.set_grad_enabled(False)
config = transformers.BertConfig(vocab_size=24, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                                 intermediate_size=12, max_position_embeddings=16)
model = transformers.BertModel(config).eval()
for name, parameter in model.named_parameters():
    parameter.copy_(torch.randn_like(parameter) * 0.4 + (1 if "LayerNorm.weight" in name else 0))
tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece({piece: i for i, piece in enumerate(PIECES)},
                                                             unk_token="[UNK]"))
tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
tokenizer.decoder = tokenizers.decoders.WordPiece()
tokenizer.add_special_tokens(PIECES[:5])

model.save_pretrained(FOLDER)
tokenizer.save(str(FOLDER / "tokenizer.json"))
rows = [tokenizer.encode(text).ids for text in TEXTS]
places = max(map(len, rows)) + 1
ids = torch.tensor([row + [0] * (places - len(row)) for row in rows])
lengths = torch.tensor([len(row) for row in rows])
mask = torch.arange(places)[None] < lengths[:, None]
states = model.double()(input_ids=ids, attention_mask=mask).last_hidden_state
save_file({"tokens": ids.int(), "lengths": lengths.int(), "states": states.float()}, FOLDER / "expected.safetensors")
