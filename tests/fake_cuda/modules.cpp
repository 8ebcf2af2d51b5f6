// The fake driver's calls about code: modules, and the compiler by itself.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fullbore/device/cuda/driver/handles.h"
#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/machine_code.h"

using fullbore::cuda::LinkHandle;
using fullbore::cuda::ModuleHandle;
using fullbore::fake_cuda::Card;
using fullbore::fake_cuda::Entry;
using fullbore::fake_cuda::is_machine_code;
using fullbore::fake_cuda::Link;
using fullbore::fake_cuda::machine;
using fullbore::fake_cuda::machine_code_of;
using fullbore::fake_cuda::Module;
using fullbore::fake_cuda::read_machine_code;
namespace cuda = fullbore::cuda;
namespace fake = fullbore::fake_cuda;
namespace ptx = fullbore::ptx;

namespace {

/// Of "sm_80", or of "sm_90a", which runs on that very kind of card alone.
bool runs_on(const std::string& target, int64_t capability) {
  const std::string number = target.substr(std::min(target.size(), size_t{3}));
  const int64_t wanted = std::atoll(number.c_str());
  return number.ends_with('a') ? wanted == capability : wanted <= capability;
}

bool are_known(unsigned count, const int* options) {
  return std::all_of(options, options + count, [](int option) {
    return option == cuda::kErrorLog || option == cuda::kErrorLogBytes;
  });
}

void write_log(unsigned count, const int* options, void** values, const std::string& text) {
  char* log = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == cuda::kErrorLog) log = static_cast<char*>(values[i]);
    if (options[i] == cuda::kErrorLogBytes) bytes = reinterpret_cast<size_t>(values[i]);
  }
  if (log != nullptr && bytes > 0) std::strncpy(log, text.c_str(), bytes - 1);
}

/// The text as code of the card; `problem` gets the compiler's words.
int parse(const std::string& text, const std::function<uint64_t(ptx::GlobalVariable&)>& place,
          ptx::Module* code, std::string* problem) {
  try {
    *code = ptx::parse(text, place);
  } catch (const ptx::Fault& fault) {
    *problem = fault.what();
    return cuda::kInvalidPtx;
  }
  return runs_on(code->target, machine().told.capability) ? 0 : cuda::kNoBinaryForGpu;
}

/// As the driver's compiler has it: of a driver without one any PTX is too new.
int compile(const std::string& text, const std::function<uint64_t(ptx::GlobalVariable&)>& place,
            ptx::Module* code, std::string* problem) {
  FakeCuda& told = machine().told;
  if (told.compiler == 0) return cuda::kUnsupportedPtx;
  ++told.compilations;
  return parse(text, place, code, problem);
}

Link* link_of(LinkHandle handle) {
  const auto found = machine().owned.find(reinterpret_cast<const void*>(handle));
  return found == machine().owned.end() ? nullptr : static_cast<Link*>(found->second.get());
}

}  // namespace

extern "C" {

int cuModuleLoadDataEx(ModuleHandle* handle, const void* image, unsigned count, int* options,
                       void** values) {
  const Entry entry("cuModuleLoadDataEx");
  if (entry.code() != 0) return entry.code();
  if (!are_known(count, options)) return cuda::kInvalidValue;
  Card& card = entry.card();
  const auto module = std::make_shared<Module>();
  module->card = &card;
  const auto place = [&](ptx::GlobalVariable& variable) {
    const auto bytes = static_cast<int64_t>(variable.contents.size());
    variable.address = card.memory.allocate(bytes);
    std::ranges::copy(variable.contents, card.memory.at(variable.address, bytes).begin());
    return variable.address;
  };
  std::string problem;
  int code = 0;
  if (is_machine_code(image)) {
    std::string text;
    code = read_machine_code(image, &text, &module->is_hollow);
    ++(code == 0 ? machine().told.code_loads : machine().told.code_refusals);
    if (code == 0) code = parse(text, place, &module->code, &problem);
  } else {
    code = compile(static_cast<const char*>(image), place, &module->code, &problem);
  }
  if (code != 0) {
    write_log(count, options, values, problem);
    return code;
  }
  *handle = reinterpret_cast<ModuleHandle>(module.get());
  machine().owned[module.get()] = module;
  ++machine().told.modules;
  return 0;
}

int cuModuleUnload(ModuleHandle handle) {
  const Entry entry("cuModuleUnload");
  if (entry.code() != 0) return entry.code();
  machine().complete_all();
  auto* const module = reinterpret_cast<Module*>(handle);
  for (const ptx::GlobalVariable& each : module->code.variables)
    module->card->memory.free(each.address);
  machine().owned.erase(module);
  --machine().told.modules;
  return 0;
}

int cuLinkCreate_v2(unsigned count, int* options, void**, LinkHandle* handle) {
  const Entry entry("cuLinkCreate_v2");
  if (entry.code() != 0) return entry.code();
  if (!are_known(count, options)) return cuda::kInvalidValue;
  *handle = reinterpret_cast<LinkHandle>(machine().own<Link>());
  ++machine().told.links;
  return 0;
}

// Options that are told here are about the compiler alone, and none of ours is.
int cuLinkAddData_v2(LinkHandle handle, int kind, void* data, size_t bytes, const char* name,
                     unsigned count, int*, void**) {
  const Entry entry("cuLinkAddData_v2");
  if (entry.code() != 0) return entry.code();
  Link* const link = link_of(handle);
  if (link == nullptr) return cuda::kInvalidHandle;
  const auto* const text = static_cast<const char*>(data);
  if (kind != cuda::kPtxInput || count != 0 || name == nullptr || bytes == 0 ||
      text[bytes - 1] != '\0' || std::strlen(text) + 1 != bytes)
    return cuda::kInvalidValue;
  ptx::Module code;
  std::string problem;
  const int result = compile(
      text, [](ptx::GlobalVariable&) { return 256; }, &code, &problem);
  if (result != 0) return result;
  link->ptx = text;
  return 0;
}

int cuLinkComplete(LinkHandle handle, void** code, size_t* bytes) {
  const Entry entry("cuLinkComplete");
  if (entry.code() != 0) return entry.code();
  Link* const link = link_of(handle);
  if (link == nullptr) return cuda::kInvalidHandle;
  if (!link->ptx) return cuda::kInvalidValue;
  link->code = machine_code_of(*link->ptx);
  *code = link->code.data();
  *bytes = link->code.size();
  return 0;
}

int cuLinkDestroy(LinkHandle handle) {
  const Entry entry("cuLinkDestroy");
  if (entry.code() != 0) return entry.code();
  Link* const link = link_of(handle);
  if (link == nullptr) return cuda::kInvalidHandle;
  // Whoever looks at the code from now on finds none, in memory that is there a while longer.
  static std::string last;
  std::ranges::fill(link->code, '\xdd');
  last.swap(link->code);
  machine().owned.erase(link);
  --machine().told.links;
  return 0;
}

}  // extern "C"
