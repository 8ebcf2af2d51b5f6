#include "fullbore/device/cuda/driver/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/device/cuda/driver/in_flight.h"
#include "fullbore/device/device_error.h"

namespace fullbore::cuda {
namespace {

constexpr const char* kVariable = "FULLBORE_CUDA_DRIVER";
constexpr const char* kUsual = "libcuda.so.1";
// cuGraphAddKernelNode_v2, with all that is used of every driver, is there from 12.2 on.
constexpr int kOldestVersion = 12020;

std::string text_of_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

Library::Library(const std::string& path)
    : path_(path), handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* const reason = ::dlerror();
  throw UsageError(fmt::format(
      "no driver of NVIDIA cards: {} cannot be loaded ({}). It comes with NVIDIA's driver for the "
      "system, 535 or later; {} names another file; use engine.device=cpu without a card",
      path, reason == nullptr ? "no reason given" : excerpt(reason, 200), kVariable));
}

Library::~Library() { ::dlclose(handle_); }

void* Library::find(const char* name) const { return ::dlsym(handle_, name); }

void* Library::symbol(const char* name) const {
  void* const found = find(name);
  if (found == nullptr)
    throw UsageError(
        fmt::format("{} has no function {}: it is no driver of CUDA {} or later; use "
                    "engine.device=cpu, or update the driver",
                    path_, name, text_of_version(kOldestVersion)));
  return found;
}

std::string Library::build() const {
  link_map* map = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(map->l_name, error);
  struct stat status {};
  if (error || ::stat(file.c_str(), &status) != 0) return "";
  return fmt::format("{}, {} bytes of {}", file.filename().string(), status.st_size,
                     status.st_mtim.tv_sec);
}

void throw_failure(const char* call, int code) {
  std::string text = fmt::format("{}: {}", call, result_text(code));
  if (code == kOutOfMemory) throw MemoryError(text);
  if (is_lost(code))
    text += fmt::format(". {}What was saved is whole: --resume continues from the last checkpoint",
                        in_flight_text());
  throw DeviceError(text);
}

DriverStart::DriverStart(const std::string& path) : library_(path) {
  const Call<int*> version(library_, "cuDriverGetVersion");
  const Call<unsigned> start(library_, "cuInit");
  // Of a driver that refuses to start as well.
  if (version.attempt(&version_) == kSuccess && version_ < kOldestVersion)
    throw UsageError(
        fmt::format("{} is the driver of CUDA {}; {} or later is needed (release 535). Update the "
                    "driver, or use engine.device=cpu",
                    path, version_text(), text_of_version(kOldestVersion)));
  const int code = start.attempt(0);
  if (code == kNoDevice)
    throw UsageError(
        fmt::format("no NVIDIA card: {} of CUDA {} sees none. CUDA_VISIBLE_DEVICES hides cards "
                    "from it; use engine.device=cpu without one",
                    path, version_text()));
  if (code != kSuccess)
    throw UsageError(
        fmt::format("the driver of NVIDIA cards does not start: {}: cuInit: {}; use "
                    "engine.device=cpu",
                    path, result_text(code)));
}

std::string DriverStart::version_text() const { return text_of_version(version_); }

std::shared_ptr<const Driver> load_driver() {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const Driver>> loaded;
  const char* const named = std::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe)
  const std::string path = named == nullptr || *named == '\0' ? kUsual : named;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<const Driver> driver = loaded[path].lock();
  if (!driver) {
    driver = std::make_shared<Driver>(path);
    loaded[path] = driver;
  }
  return driver;
}

}  // namespace fullbore::cuda
