#include "fullbore/device/cuda/cublaslt/found_libraries.h"

#include <fmt/format.h>

#include <memory>

#include "fullbore/base/error.h"
#include "fullbore/device/cuda/cublaslt/library.h"
#include "fullbore/device/cuda/driver/context.h"

namespace fullbore::cuda {
namespace {

/// Why it is of no use; "": it works with the first card.
std::string problem_with_card(const CublasLt& library) {
  try {
    std::string why_not;
    Context(load_driver(), 0).library_matmuls(&why_not);
    return why_not;
  } catch (const Error&) {
    return fmt::format("version {} is there, and no card", library.version_text());
  }
}

}  // namespace

std::vector<fullbore::Library> found_libraries() {
  fullbore::Library cublaslt{
      .name = "cuBLASLt", .version = "", .purpose = "matmuls of a card, with engine.cublaslt=true"};
  if (const Result<std::shared_ptr<const CublasLt>> library = CublasLt::load(); library.ok()) {
    cublaslt.version = library.value()->version_text();
    cublaslt.problem = problem_with_card(*library.value());
  } else {
    cublaslt.problem = library.error();
  }
  return {cublaslt};
}

}  // namespace fullbore::cuda
