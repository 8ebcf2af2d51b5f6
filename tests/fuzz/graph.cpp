// Any bytes as the text of a graph: refused with a line, or a graph that is well formed and prints
// and reads back to itself.
#include <string>
#include <string_view>

#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Result<Graph> read = parse_graph(bytes);
  if (!read.ok()) {
    require(!read.error().empty());
    return 0;
  }
  require(verify(read.value()).empty());
  const std::string text = print(read.value());
  const Result<Graph> again = parse_graph(text);
  require(again.ok());
  require(print(again.value()) == text);
  return 0;
}
