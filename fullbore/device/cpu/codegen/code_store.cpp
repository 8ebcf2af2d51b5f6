#include "fullbore/device/cpu/codegen/code_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "fullbore/base/cache_directory.h"
#include "fullbore/base/check.h"
#include "fullbore/base/content_cache.h"
#include "fullbore/base/start_thread.h"
#include "fullbore/base/threads.h"
#include "fullbore/base/unused_memory.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <llvm-c/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>
#pragma GCC diagnostic pop

namespace fullbore::jit {
namespace {

// Programs that come and go (a fuzzer makes thousands) must not pile up code for ever.
constexpr size_t kKeptCodes = 4096;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Failure failure(llvm::Error error) { return Failure{"LLVM: " + llvm::toString(std::move(error))}; }

// Code that ORC has linked; goes when the last kernel that uses it does.
class LinkedCode : public Code {
 public:
  LinkedCode(std::shared_ptr<llvm::orc::LLJIT> jit, llvm::orc::ResourceTrackerSP tracker,
             Function entry)
      : jit_(std::move(jit)), tracker_(std::move(tracker)) {
    function_ = entry;
  }
  ~LinkedCode() override { llvm::consumeError(tracker_->remove()); }

 private:
  std::shared_ptr<llvm::orc::LLJIT> jit_;
  llvm::orc::ResourceTrackerSP tracker_;
};

}  // namespace

struct CodeStore::Implementation {
  Implementation(const CodegenTarget& t, std::string folder)
      : target(t), cache(std::move(folder)) {}

  CodegenTarget target;
  ContentCache cache;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Code>, std::less<>> codes;
  std::shared_ptr<llvm::orc::LLJIT> jit;

  Status open_linker() {
    if (jit) return success();
    auto linker = llvm::orc::LLJITBuilder().create();
    if (!linker) return failure(linker.takeError());
    // The C library's sin, cos and fmod, for the arguments that inline code does not take.
    auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
        (*linker)->getDataLayout().getGlobalPrefix());
    if (!process) return failure(process.takeError());
    (*linker)->getMainJITDylib().addGenerator(std::move(*process));
    jit = std::move(*linker);
    return success();
  }

  Result<std::shared_ptr<const Code>> link(const std::string& text, const std::string& object) {
    if (Status opened = open_linker(); !opened.ok()) return Failure{opened.error()};
    llvm::orc::ResourceTrackerSP tracker = jit->getMainJITDylib().createResourceTracker();
    if (auto error = jit->addObjectFile(tracker, llvm::MemoryBuffer::getMemBufferCopy(object)))
      return failure(std::move(error));
    auto address = jit->lookup(kernel_symbol(text));
    if (!address) {
      Failure problem = failure(address.takeError());
      llvm::consumeError(tracker->remove());
      return problem;
    }
    return std::shared_ptr<const Code>(
        std::make_shared<LinkedCode>(jit, tracker, address->toPtr<Code::Function>()));
  }

  // What does not link is made anew.
  bool find_on_disk(CodeRequest& request, const std::string& key) {
    const auto object = cache.find(key);
    if (!object) return false;
    Result<std::shared_ptr<const Code>> linked = link(request.text, *object);
    if (!linked.ok()) return false;
    request.code = codes[request.text] = std::move(linked.value());
    return true;
  }

  // Object code of each request, made by as many threads as there are processors.
  std::vector<Result<std::string>> compile(const std::vector<CodeRequest*>& requests) {
    std::vector<Result<std::string>> objects(requests.size(), std::string());
    if (requests.empty()) return objects;
    // The longest first, so that no thread is left alone with one in the end.
    std::vector<size_t> order(requests.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(),
                             [&](size_t i) { return requests[i]->text.size(); });
    std::atomic<size_t> next{0};
    const auto work = [&] {
      CodeGenerator generator(target);
      for (size_t i = next++; i < requests.size(); i = next++)
        objects[order[i]] = generator.compile(*requests[order[i]]->kernel);
    };
    const auto threads = std::min(static_cast<size_t>(available_processors()), requests.size());
    {
      const std::vector<std::jthread> helpers = start_helpers(threads - 1, work);
      work();
    }
    return objects;
  }
};

CodeStore& CodeStore::instance(bool quick) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<CodeStore>> stores;
  CodegenTarget target = host_target();
  target.quick = quick;
  const std::lock_guard lock(mutex);
  std::unique_ptr<CodeStore>& store = stores[target.text()];
  if (!store) store.reset(new CodeStore(target, compile_cache_directory("kernels")));
  return *store;
}

CodeStore::CodeStore(const CodegenTarget& target, std::string folder)
    : implementation_(new Implementation(target, std::move(folder))) {
  initialise_llvm();
}

CodeStore::~CodeStore() = default;

std::string CodeStore::key(const std::string& kernel_text) const {
  return fmt::format("codegen {} llvm {} {}\n{}", kCodegenVersion, LLVM_VERSION_STRING,
                     implementation_->target.text(), kernel_text);
}

std::string CodeStore::cache_path(const std::string& kernel_text) const {
  return implementation_->cache.path(key(kernel_text));
}

CodeCounts CodeStore::provide(std::vector<CodeRequest>& requests) {
  Implementation& self = *implementation_;
  const std::lock_guard lock(self.mutex);
  CodeCounts counts;
  std::vector<CodeRequest*> missing;
  auto start = std::chrono::steady_clock::now();
  for (CodeRequest& request : requests) {
    if (const auto found = self.codes.find(request.text); found != self.codes.end()) {
      request.code = found->second;
      ++counts.from_memory;
    } else if (self.find_on_disk(request, key(request.text))) {
      ++counts.from_disk;
    } else if (std::none_of(missing.begin(), missing.end(), [&](const CodeRequest* other) {
                 return other->text == request.text;
               })) {
      missing.push_back(&request);
    }
  }
  counts.load_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const std::vector<Result<std::string>> objects = self.compile(missing);
  counts.compile_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  std::map<std::string_view, std::string_view> problems;
  for (size_t i = 0; i < missing.size(); ++i) {
    CodeRequest& request = *missing[i];
    Result<std::shared_ptr<const Code>> linked = Failure{""};
    if (objects[i].ok()) linked = self.link(request.text, objects[i].value());
    if (!linked.ok()) {
      request.problem = objects[i].ok() ? linked.error() : objects[i].error();
      problems.emplace(request.text, request.problem);
      continue;
    }
    self.cache.put(key(request.text), objects[i].value());
    request.code = self.codes[request.text] = std::move(linked.value());
    ++counts.compiled;
  }
  for (CodeRequest& request : requests) {
    if (request.code != nullptr) continue;
    if (const auto problem = problems.find(request.text); problem != problems.end())
      request.problem = problem->second;
    else
      request.code = self.codes.at(request.text);
  }
  if (self.codes.size() > kKeptCodes)
    std::erase_if(self.codes, [](const auto& entry) { return entry.second.use_count() == 1; });
  // Tens of megabytes that no step executes.
  release_library_pages(reinterpret_cast<const void*>(&LLVMContextCreate));
  counts.load_seconds += seconds_since(start);
  return counts;
}

void CodeStore::drop_unused() {
  const std::lock_guard lock(implementation_->mutex);
  std::erase_if(implementation_->codes,
                [](const auto& entry) { return entry.second.use_count() == 1; });
}

}  // namespace fullbore::jit
