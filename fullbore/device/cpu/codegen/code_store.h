#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cpu/codegen/code_generator.h"

namespace fullbore::jit {

/// Kernel code in memory, ready to run.
class Code {
 public:
  using Function = void (*)(void* const* buffers, const int64_t* parameters, int64_t begin,
                            int64_t end);
  virtual ~Code() = default;
  Function function() const { return function_; }

 protected:
  Function function_ = nullptr;
};

/// A kernel whose code is wanted.
struct CodeRequest {
  std::string text;
  const KernelIr* kernel = nullptr;
  std::shared_ptr<const Code> code;  ///< the answer; or none,
  std::string problem;               ///< and why
};

/// Where code comes from, the cheapest source first: this process's memory, the cache on disk, the
/// code generator (on as many threads as there are processors).
struct CodeCounts {
  int from_memory = 0;
  int from_disk = 0;
  int compiled = 0;
  double compile_seconds = 0;  ///< wall clock
  double load_seconds = 0;
};

/// All kernel code of the process; kernels with equal text share it. Thread-safe.
class CodeStore {
 public:
  /// The store of this processor and of cache_directory(). `quick`: CodegenTarget::quick.
  static CodeStore& instance(bool quick = false);
  CodeStore(const CodegenTarget& target, std::string folder);
  ~CodeStore();

  CodeCounts provide(std::vector<CodeRequest>& requests);
  /// Forgets the code that no kernel uses any more.
  void drop_unused();
  std::string key(const std::string& kernel_text) const;  ///< of its cache entry
  std::string cache_path(const std::string& kernel_text) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace fullbore::jit
