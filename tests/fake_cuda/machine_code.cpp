#include "tests/fake_cuda/machine_code.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "fullbore/device/cuda/driver/result_code.h"
#include "tests/fake_cuda/machine.h"

namespace fullbore::fake_cuda {
namespace {

constexpr std::string_view kMagic =
    "\x7f"
    "FAKECU1";

struct Header {
  char magic[8] = {};
  int64_t version = 0;
  int64_t capability = 0;
  char card[64] = {};
  uint64_t is_hollow = 0;
  uint64_t bytes = 0;
  uint64_t sum = 0;  ///< of all that goes before, and of the PTX
};

// FNV-1a.
uint64_t sum_of(std::string_view bytes, uint64_t sum = 0xcbf29ce484222325) {
  for (const char each : bytes) sum = (sum ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  return sum;
}

uint64_t sum_of(const Header& header, std::string_view ptx) {
  return sum_of(ptx, sum_of({reinterpret_cast<const char*>(&header), offsetof(Header, sum)}));
}

/// All but what depends on the PTX.
Header header_of_now() {
  const FakeCuda& told = machine().told;
  Header header;
  kMagic.copy(header.magic, sizeof header.magic);
  header.version = told.version;
  header.capability = told.capability;
  // And zeros behind it, whatever an earlier name has left there.
  std::string_view(told.card_name).copy(header.card, sizeof header.card - 1);
  return header;
}

}  // namespace

std::string machine_code_of(const std::string& ptx) {
  Header header = header_of_now();
  header.is_hollow = ptx.find(".extern .func") != std::string::npos ? 1 : 0;
  header.bytes = ptx.size();
  header.sum = sum_of(header, ptx);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + ptx;
}

bool is_machine_code(const void* image) {
  return std::strncmp(static_cast<const char*>(image), kMagic.data(), kMagic.size()) == 0;
}

// As a driver it believes the length that it is told.
int read_machine_code(const void* image, std::string* ptx, bool* is_hollow) {
  Header header;
  std::memcpy(&header, image, sizeof header);
  const Header now = header_of_now();
  if (header.capability != now.capability ||
      std::memcmp(header.card, now.card, sizeof now.card) != 0)
    return cuda::kNoBinaryForGpu;
  if (header.version != now.version || header.bytes > (uint64_t{1} << 30))
    return cuda::kInvalidImage;
  ptx->assign(static_cast<const char*>(image) + sizeof header, header.bytes);
  if (header.sum != sum_of(header, *ptx)) return cuda::kInvalidImage;
  *is_hollow = header.is_hollow != 0;
  return 0;
}

}  // namespace fullbore::fake_cuda
