#include "fullbore/device/cuda/cublaslt/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "fullbore/base/excerpt.h"

namespace fullbore::cuda {
namespace {

constexpr const char* kVariable = "FULLBORE_CUBLASLT";
// The latest first. Bare names: where they lie is the loader's to know.
constexpr const char* kUsual[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
// Numbers of interface.h are of these.
constexpr size_t kOldest = 12'00'00, kFirstUnknown = 14'00'00;

const char* named_library() {
  const char* const named = std::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe)
  return named == nullptr || *named == '\0' ? nullptr : named;
}

std::string text_of(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// The first of the names that the loader finds; null, and why.
void* open_first(std::string& name, std::string& why_not) {
  const char* const named = named_library();
  for (const char* const each : kUsual) {
    name = named == nullptr ? each : named;
    if (void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* const reason = ::dlerror();
    why_not += fmt::format("{}{}", why_not.empty() ? "" : "; ",
                           reason == nullptr ? name + ": no reason given" : excerpt(reason, 200));
    if (named != nullptr) break;
  }
  return nullptr;
}

}  // namespace

Result<std::shared_ptr<const CublasLt>> CublasLt::load() {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const CublasLt>> loaded;
  const char* const named = named_library();
  const std::scoped_lock lock(mutex);
  std::weak_ptr<const CublasLt>& known = loaded[named == nullptr ? "" : named];
  if (std::shared_ptr<const CublasLt> library = known.lock()) return library;
  Result<std::shared_ptr<const CublasLt>> library = open();
  if (library.ok()) known = library.value();
  return library;
}

Result<std::shared_ptr<const CublasLt>> CublasLt::open() {
  std::string name, why_not;
  void* const handle = open_first(name, why_not);
  if (handle == nullptr) return Failure{why_not};
  // It stays loaded: what it has made of the driver's lives as long as the process.
  const auto library = std::make_shared<CublasLt>();
  if (std::string problem = library->find_functions(name, handle); !problem.empty())
    return Failure{std::move(problem)};
  return std::shared_ptr<const CublasLt>(library);
}

std::string CublasLt::find_functions(const std::string& name, void* library) {
  std::string missing;
  const auto find = [&]<class Function>(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(::dlsym(library, symbol));
    if (function == nullptr && missing.empty()) missing = symbol;
  };
  find(version, "cublasLtGetVersion");
  // Of a library that lacks more: what it is says why.
  if (version != nullptr)
    if (const size_t number = version(); number < kOldest || number >= kFirstUnknown)
      return fmt::format("{} is cuBLASLt {}; 12 and 13 are known", name, text_of(number));
  find(create, "cublasLtCreate");
  find(destroy, "cublasLtDestroy");
  find(make_matmul, "cublasLtMatmulDescCreate");
  find(destroy_matmul, "cublasLtMatmulDescDestroy");
  find(set_matmul, "cublasLtMatmulDescSetAttribute");
  find(make_layout, "cublasLtMatrixLayoutCreate");
  find(destroy_layout, "cublasLtMatrixLayoutDestroy");
  find(set_layout, "cublasLtMatrixLayoutSetAttribute");
  find(make_preference, "cublasLtMatmulPreferenceCreate");
  find(destroy_preference, "cublasLtMatmulPreferenceDestroy");
  find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
  find(find_algorithms, "cublasLtMatmulAlgoGetHeuristic");
  find(matmul, "cublasLtMatmul");
  if (missing.empty()) return "";
  return fmt::format("{} has no function {}", name, missing);
}

std::string CublasLt::version_text() const { return text_of(version()); }

std::string lt_status_text(int status) {
  const char* name = nullptr;
  switch (status) {
    case kLtSuccess: name = "SUCCESS"; break;
    case kLtNotInitialized: name = "NOT_INITIALIZED"; break;
    case kLtAllocationFailed: name = "ALLOC_FAILED"; break;
    case kLtInvalidValue: name = "INVALID_VALUE"; break;
    case kLtArchitectureMismatch: name = "ARCH_MISMATCH"; break;
    case kLtMappingError: name = "MAPPING_ERROR"; break;
    case kLtExecutionFailed: name = "EXECUTION_FAILED"; break;
    case kLtInternalError: name = "INTERNAL_ERROR"; break;
    case kLtNotSupported: name = "NOT_SUPPORTED"; break;
    case kLtLicenseError: name = "LICENSE_ERROR"; break;
    default: return fmt::format("status {}", status);
  }
  return fmt::format("CUBLAS_STATUS_{} ({})", name, status);
}

}  // namespace fullbore::cuda
