#include "tests/fake_cuda/multiprocessor.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace fullbore::fake_cuda {
namespace {

/// What stands between the name of a kernel and its body: parameters, and what its launches promise.
std::string declaration_of(const ptx::Kernel& kernel) {
  const std::string begin = ".entry " + kernel.name + "(";
  std::string text;
  for (const std::string& line : kernel.text) {
    const size_t from = text.empty() ? line.find(begin) : 0;
    if (from == std::string::npos) continue;
    const size_t body = line.find('{', from);
    text += line.substr(from, body - from) + '\n';
    if (body != std::string::npos) break;
  }
  return text;
}

/// Of ".maxntid 256, 2, 1" the product; 0 where there is no such directive.
int64_t directive(const std::string& text, const std::string& name) {
  const size_t at = text.find(name);
  if (at == std::string::npos) return 0;
  const char* next = text.c_str() + at + name.size();
  char* end = nullptr;
  int64_t product = std::strtoll(next, &end, 10);
  while (*end == ',') {
    next = end + 1;
    product *= std::strtoll(next, &end, 10);
  }
  return product;
}

}  // namespace

Multiprocessor multiprocessor(int64_t capability) {
  switch (capability) {
    case 80:
    case 90:
    case 100: return {2048, 32, 1 << 16};
    case 86:
    case 87: return {1536, 16, 1 << 16};
    default: return {1536, 24, 1 << 16};
  }
}

int registers_of(const ptx::Kernel& kernel) {
  constexpr int64_t kMost = 255;
  constexpr int64_t kAll = 1 << 16;
  const std::string declaration = declaration_of(kernel);
  const int64_t told = directive(declaration, ".maxntid");
  const int64_t threads = told > 0 ? told : 1024;
  const int64_t blocks = std::max<int64_t>(directive(declaration, ".minnctapersm"), 1);
  const int64_t room = kAll / (threads * blocks) / 8 * 8;
  return static_cast<int>(std::min({int64_t{kernel.slots}, room, kMost}));
}

// Each of four parts of a multiprocessor gives whole warps their registers, 256 at a time; shared memory goes to whole
// blocks, 128 bytes at a time.
int resident_blocks(const ptx::Kernel& kernel, int threads, int64_t dynamic_shared_bytes,
                    int64_t capability, int64_t shared_bytes) {
  const Multiprocessor all = multiprocessor(capability);
  const int warps = (threads + 31) / 32;
  int blocks = std::min(all.blocks, all.threads / 32 / warps);
  const int units = std::max((registers_of(kernel) * 32 + 255) / 256, 1);
  const int part_warps = all.registers / 4 / 256 / units;
  blocks = std::min(blocks, 4 * part_warps / warps);
  int64_t bytes = kernel.shared_bytes + dynamic_shared_bytes + kReservedSharedBytes;
  if (bytes % 128 != 0) bytes += 128 - bytes % 128;
  return static_cast<int>(std::min<int64_t>(blocks, shared_bytes / bytes));
}

}  // namespace fullbore::fake_cuda
