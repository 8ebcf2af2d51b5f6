#pragma once
#include <memory>

#include "fullbore/ckpt/gguf_file.h"
#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// The tokenizer in the metadata of a GGUF file: byte-level BPE (tokenizer.ggml.model "gpt2") split as tokenizer.ggml.pre
/// says: gpt-2, llama-bpe, qwen2 or smollm. Qwen2's normal form, which llama.cpp leaves out, is applied as the model was
/// trained with it. Failure names the file, the key, and what stands there.
Result<std::shared_ptr<const Tokenizer>> gguf_tokenizer(const GgufFile& file);

/// Adds the same keys for a tokenizer, with unused tokens up to `rows`. Of any other than a byte-level BPE llama.cpp can
/// say no more than that there is none: it takes and gives ids.
void add_gguf_tokenizer(const Tokenizer& tokenizer, int64_t rows, GgufMetadata& metadata);

}  // namespace fullbore
