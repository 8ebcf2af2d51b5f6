// Any bytes as a GGUF file: refused with a message, or readable to the last tensor and writable again; and as a model and
// a tokenizer in it.
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/ckpt/gguf_file.h"
#include "fullbore/text/gguf_model.h"
#include "fullbore/text/gguf_tokenizer.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile memory(data, size);
  const Result<GgufFile> opened = GgufFile::open(memory.path());
  if (!opened.ok()) {
    require(opened.error().size() > memory.path().size() + 2);
    return 0;
  }
  const GgufFile& file = opened.value();
  try {
    const GgufModel model = GgufModel::open(memory.path());
    for (const GgufName& name : model.names(model.config().decoder)) model.read(name);
  } catch (const DataError& error) {
    require(error.what()[0] != 0);
  }
  const auto tokenizer = gguf_tokenizer(file);
  if (tokenizer.ok()) require(tokenizer.value()->encode("the 12").ok());
  GgufHeader header{3, file.metadata(), file.tensors()};
  header.metadata.erase("general.alignment");
  uint64_t bytes = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    require(tensor.begin + tensor.bytes <= size);
    require(file.read(tensor).take_or_throw().size() ==
            static_cast<size_t>(tensor.shape.elements()));
    bytes += (tensor.bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
  }
  const std::string again = encode_gguf_header(header);
  const GgufHeader same = parse_gguf_header(again, again.size() + bytes).take_or_throw();
  require(same.metadata.size() == header.metadata.size());
  require(same.tensors.size() == header.tensors.size());
  for (size_t i = 0; i < same.tensors.size(); ++i)
    require(same.tensors[i].name == header.tensors[i].name &&
            same.tensors[i].shape == header.tensors[i].shape &&
            same.tensors[i].bytes == header.tensors[i].bytes);
  return 0;
}
