// Any bytes as report.json, graph.txt and tensors of a kept step whose manifest is right: refused, or a step whose graph
// is well formed and has all of its inputs.
#include "fullbore/train/bad_step.h"

#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/ckpt/manifest.h"
#include "fullbore/ir/verify.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/memory_folder.h"

using namespace fullbore;
using fullbore::testing::MemoryFolder;
using fullbore::testing::parts_of;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFolder folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string_view> parts = parts_of(bytes, 3);
  Manifest manifest;
  const auto put = [&](const char* name, std::string_view text) {
    folder.put(name, text);
    manifest[name] = {text.size(), hash_text(text)};
  };
  put("report.json", parts[0]);
  put("graph.txt", parts[1]);
  put("weights.safetensors", parts[2]);
  put("batch.safetensors", parts[2]);
  folder.put(kManifestName, encode_manifest(manifest));
  try {
    const LoadedStep loaded = load_bad_step(folder.path());
    const Graph& graph = loaded.step.graph;
    require(verify(graph).empty() && loaded.inputs.size() == graph.inputs().size());
    for (size_t i = 0; i < loaded.inputs.size(); ++i)
      require(loaded.inputs[i].type() == graph.type(graph.inputs()[i].value));
  } catch (const DataError& error) {
    require(error.what()[0] != '\0');
  }
  return 0;
}
