#include "fullbore/base/processor_facts.h"

#include <fstream>
#include <string_view>

namespace fullbore {
namespace {

/// Text after "key<blanks>:" of the first line that starts with the key, or "".
std::string proc_field(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

}  // namespace

std::string processor_name() {
  const std::string name = proc_field("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

std::vector<std::string> processor_features() {
  // The kernel's list, not CPUID's: it leaves out what the operating system has not enabled.
  const std::string flags = " " + proc_field("/proc/cpuinfo", "flags") + " ";
  std::vector<std::string> found;
  for (const char* name : {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni",
                           "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16"})
    if (flags.find(" " + std::string(name) + " ") != std::string::npos) found.emplace_back(name);
  return found;
}

}  // namespace fullbore
