#include "workloads/latentwire/wire_file.h"

#include <fmt/format.h>

#include <cmath>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/dtype.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/input_file.h"
#include "fullbore/monitor/crc32c.h"

namespace fullbore::latentwire {
namespace {

constexpr std::string_view kMagic = "FBLW";
constexpr uint64_t kVersion = 1;
constexpr size_t kHeaderBytes = 32, kChecksumBytes = 4, kFormAt = 16;
constexpr uint64_t kMostFileBytes = uint64_t{1} << 27;

void put(std::string& bytes, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t take(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

/// What of the numbers no encoder writes; "" for none.
std::string fault_of(const Wire& wire) {
  for (size_t i = 0; i < wire.numbers.scales.size(); ++i) {
    const float scale = f16_to_f32(wire.numbers.scales[i]);
    if (!(scale > 0) || !std::isfinite(scale))
      return fmt::format("byte {}: a scale of {}; a positive number was expected",
                         kHeaderBytes + 2 * i, scale);
  }
  const std::string& payload = wire.numbers.payload;
  const size_t begin = kHeaderBytes + 2 * wire.numbers.scales.size();
  if (wire.form.bits == 16) {
    for (size_t i = 0; i < payload.size(); i += 2)
      if (!std::isfinite(f16_to_f32(static_cast<uint16_t>(take(payload, i, 2)))))
        return fmt::format("byte {}: a number that is not finite", begin + i);
  } else if (const int64_t used = wire.form.numbers() * wire.form.bits % 8;
             used != 0 && static_cast<unsigned char>(payload.back()) >> used != 0) {
    return fmt::format("byte {}: bits behind the last number are not zero",
                       begin + payload.size() - 1);
  }
  return {};
}

}  // namespace

std::string wire_bytes(const Wire& wire) {
  std::string bytes(kMagic);
  put(bytes, kVersion, 4);
  put(bytes, wire.fingerprint, 8);
  for (const int64_t value : {wire.form.slots, wire.form.width, wire.form.bits, wire.form.group})
    put(bytes, static_cast<uint64_t>(value), 4);
  for (const uint16_t scale : wire.numbers.scales) put(bytes, scale, 2);
  bytes += wire.numbers.payload;
  put(bytes, crc32c(bytes), kChecksumBytes);
  return bytes;
}

Result<Wire> parse_wire(std::string_view bytes, const std::string& source) {
  const auto fail = [&](const std::string& reason) {
    return Failure{fmt::format("{}: {}", source, reason)};
  };
  if (!bytes.starts_with(kMagic)) return fail("byte 0: no wire; FBLW was expected");
  if (bytes.size() < kHeaderBytes + kChecksumBytes)
    return fail(fmt::format("cut short: {} bytes; a header and its checksum take {}", bytes.size(),
                            kHeaderBytes + kChecksumBytes));
  if (const uint64_t version = take(bytes, 4, 4); version != kVersion)
    return fail(fmt::format("byte 4: version {}; {} was expected", version, kVersion));
  Wire wire;
  wire.fingerprint = take(bytes, 8, 8);
  const auto number = [&](size_t place) {
    return static_cast<int64_t>(take(bytes, kFormAt + 4 * place, 4));
  };
  wire.form = {.slots = number(0), .width = number(1), .bits = number(2), .group = number(3)};
  if (const Status status = check_wire_form(wire.form); !status)
    return fail("header: " + status.error());
  const auto expected = kHeaderBytes + static_cast<size_t>(wire.form.bytes()) + kChecksumBytes;
  if (bytes.size() != expected)
    return fail(fmt::format("{}: {} bytes; {} x {} numbers of {} bits take {}",
                            bytes.size() < expected ? "cut short" : "too long", bytes.size(),
                            wire.form.slots, wire.form.width, wire.form.bits, expected));
  const size_t end = expected - kChecksumBytes;
  const auto told = static_cast<uint32_t>(take(bytes, end, kChecksumBytes));
  if (const uint32_t found = crc32c(bytes.substr(0, end)); found != told)
    return fail(fmt::format("damaged: the checksum is {:08x}, the file says {:08x}", found, told));
  size_t at = kHeaderBytes;
  for (int64_t i = 0; i < wire.form.groups(); ++i, at += 2)
    wire.numbers.scales.push_back(static_cast<uint16_t>(take(bytes, at, 2)));
  wire.numbers.payload = bytes.substr(at, end - at);
  if (const std::string fault = fault_of(wire); !fault.empty()) return fail(fault);
  return wire;
}

Result<Wire> read_wire(const std::string& path) {
  const Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return Failure{file.error()};
  if (file.value().bytes() > kMostFileBytes)
    return Failure{fmt::format("{}: {} bytes; a wire has at most {}", path, file.value().bytes(),
                               kMostFileBytes)};
  std::string bytes(file.value().bytes(), '\0');
  if (const Status status = file.value().read_exactly(0, bytes.data(), bytes.size()); !status)
    return Failure{status.error()};
  return parse_wire(bytes, path);
}

Status write_wire(const Wire& wire, const std::string& path) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file.ok()) return Failure{file.error()};
  if (Status status = file.value().write(wire_bytes(wire)); !status) return status;
  return file.value().commit();
}

Status check_wire(const Wire& wire, uint64_t fingerprint, int64_t slots, int64_t width,
                  const std::string& source) {
  if (wire.fingerprint != fingerprint)
    return Failure{fmt::format("{}: written by the encoder {}, not by {}", source,
                               hash_hex(wire.fingerprint), hash_hex(fingerprint))};
  if (wire.form.slots != slots || wire.form.width != width)
    return Failure{fmt::format("{}: {} x {} numbers; {} x {} were expected", source,
                               wire.form.slots, wire.form.width, slots, width)};
  return success();
}

}  // namespace fullbore::latentwire
