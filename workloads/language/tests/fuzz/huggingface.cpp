// Any bytes as a language model in the Hugging Face layout: config.json, an index of several files or none, and one file of
// tensors, with zero bytes between them: refused with the file's name, or every tensor can be read.
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/text/huggingface_bert.h"
#include "fullbore/text/huggingface_model.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/memory_folder.h"
#include "workloads/language/huggingface_check.h"

using namespace fullbore;
using fullbore::testing::MemoryFolder;
using fullbore::testing::parts_of;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFolder folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string_view> parts = parts_of(bytes, 3);
  const bool indexed = !parts[1].empty();
  folder.put("config.json", parts[0]);
  folder.put(indexed ? "model.safetensors.index.json" : "model.safetensors",
             indexed ? parts[1] : parts[2]);
  folder.remove(indexed ? "model.safetensors" : "model.safetensors.index.json");
  if (indexed) folder.put("part.safetensors", parts[2]);
  try {
    const HuggingFaceTensors tensors = HuggingFaceTensors::open(folder.path());
    for (const HuggingFaceTensors::Tensor& tensor : tensors.all()) {
      require(tensor.stored->bytes() <= size);
      require(static_cast<int64_t>(tensor.read().size()) == tensor.type().elements());
    }
  } catch (const DataError& error) {
    require(std::string_view(error.what()).find(folder.path()) != std::string_view::npos);
  }
  try {
    const HuggingFaceModel model = HuggingFaceModel::open(folder.path());
    check_huggingface(model, model.config().decoder);
    require(!model.names(model.config().decoder).empty());
    // What is written of it says the same.
    const HuggingFaceConfig& config = model.config();
    require(parse_huggingface_config(huggingface_config_json(config), "again").decoder ==
            config.decoder);
  } catch (const DataError& error) {
    require(std::string_view(error.what()).find(folder.path()) != std::string_view::npos);
  }
  try {
    const nn::BertConfig bert = parse_bert_config(parts[0], folder.path());
    require(parse_bert_config(bert_config_json(bert), "again") == bert);
  } catch (const DataError& error) {
    require(std::string_view(error.what()).find(folder.path()) != std::string_view::npos);
  }
  return 0;
}
