#include "tests/cuda/fake_card.h"

#include <dlfcn.h>

#include <cstdlib>

#include "fullbore/device/registry.h"

namespace fullbore::cuda {
namespace {

void* library() {
  static void* const loaded = ::dlopen(FB_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) std::abort();
  return loaded;
}

}  // namespace

std::string fake_driver() { return FB_FAKE_CUDA; }

FakeCuda& FakeCard::fake() {
  static auto* const get = reinterpret_cast<FakeCuda* (*)()>(::dlsym(library(), "fake_cuda"));
  return *get();
}

void FakeCard::reset() {
  static auto* const call = reinterpret_cast<void (*)()>(::dlsym(library(), "fake_cuda_reset"));
  call();
}

void FakeCard::restart() {
  static auto* const call = reinterpret_cast<void (*)()>(::dlsym(library(), "fake_cuda_restart"));
  call();
}

std::shared_ptr<Device> FakeCard::open(const std::string& name) { return open_device(name); }

void FakeCard::SetUp() {
  ::setenv("FULLBORE_CUDA_DRIVER", FB_FAKE_CUDA, 1);
  ::setenv("FULLBORE_CUBLASLT", FB_FAKE_CUDA, 1);
  ::unsetenv("FULLBORE_CUDA_BLOCKING");
  // Or the first test would leave its code to the others, which then call the driver less often.
  ::setenv("FULLBORE_COMPILE_CACHE", "off", 1);
  reset();
}

void FakeCard::TearDown() {
  ::unsetenv("FULLBORE_COMPILE_CACHE");
  const FakeCuda& now = fake();
  if (HasFailure()) ADD_FAILURE() << "what the card met: " << now.fault;
  EXPECT_EQ(now.allocations, 0);
  EXPECT_EQ(now.allocated_bytes, 0);
  EXPECT_EQ(now.pinned, 0);
  EXPECT_EQ(now.streams, 0);
  EXPECT_EQ(now.events, 0);
  EXPECT_EQ(now.modules, 0);
  EXPECT_EQ(now.links, 0);
  EXPECT_EQ(now.graphs, 0);
  EXPECT_EQ(now.contexts, 0);
  EXPECT_EQ(now.lt_objects, 0);
}

Variable::Variable(const char* name, const std::string& value)
    : name_(name), was_set_(std::getenv(name) != nullptr) {
  if (was_set_) before_ = std::getenv(name);
  ::setenv(name, value.c_str(), 1);
}

Variable::~Variable() {
  if (was_set_)
    ::setenv(name_, before_.c_str(), 1);
  else
    ::unsetenv(name_);
}

}  // namespace fullbore::cuda
