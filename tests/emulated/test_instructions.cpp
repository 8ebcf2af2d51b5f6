// Each instruction that immintrin.h here computes, beside the processor's own, where the machine has it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "fullbore/base/processor.h"
#include "instructions.h"

namespace fullbore::emulated {
namespace {

// All of them are compiled for AVX-512, whatever else they are of.
bool machine_has(Extension extension) {
  const Processor& processor = machine_processor();
  if (processor.level < ProcessorLevel::avx512) return false;
  switch (extension) {
    case Extension::kAvx512: return true;
    case Extension::kBf16: return processor.avx512_bf16;
    case Extension::kVnni: return processor.avx512_vnni;
    case Extension::kAvxVnni: return processor.avx_vnni;
    case Extension::kAmx: return processor.amx_bf16;
  }
  return false;
}

/// Four bytes that are a number, a special value or anything.
uint32_t draw_word(std::mt19937_64& draws) {
  constexpr std::array<uint32_t, 12> kSpecial = {0,          0x80000000, 0x7f800000, 0xff800000,
                                                 0x7fc00000, 0x00000001, 0x807fffff, 0x7f7fffff,
                                                 0x00800000, 0x3f800000, 0xbf808000, 0x4effffff};
  const auto kind = draws() % 8;
  const auto bits = static_cast<uint32_t>(draws());
  if (kind == 0) return kSpecial[bits % kSpecial.size()];
  if (kind == 1) return bits;
  if (kind == 2) return bits % 64;  // an index, or a denormal
  const float number = std::ldexp(static_cast<float>(bits) / 4294967296.0F - 0.5F,
                                  static_cast<int>(draws() % 24) - 8);
  return std::bit_cast<uint32_t>(number);
}

void draw(std::mt19937_64& draws, Kind kind, uint8_t (&operand)[64]) {
  for (int i = 0; i < 64; i += kind == Kind::kDouble ? 8 : 4) {
    const uint32_t word = draw_word(draws);
    if (kind != Kind::kDouble) {
      std::memcpy(operand + i, &word, sizeof word);
      continue;
    }
    const double number =
        std::bit_cast<float>(word) * (1 + 1e-9 * static_cast<double>(draws() % 1000));
    std::memcpy(operand + i, &number, sizeof number);
  }
}

template <class T>
T lane(const Written& written, size_t at) {
  T value;
  std::memcpy(&value, written.bytes + at, sizeof value);
  return value;
}

bool equal(const Written& a, const Written& b, Kind kind) {
  if (std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0) return true;
  const size_t size = kind == Kind::kDouble ? sizeof(double) : sizeof(float);
  for (size_t at = 0; at < sizeof a.bytes; at += size) {
    if (std::memcmp(a.bytes + at, b.bytes + at, size) == 0) continue;
    const bool both_nan =
        kind == Kind::kDouble  ? std::isnan(lane<double>(a, at)) && std::isnan(lane<double>(b, at))
        : kind == Kind::kFloat ? std::isnan(lane<float>(a, at)) && std::isnan(lane<float>(b, at))
                               : false;
    if (!both_nan) return false;
  }
  return true;
}

std::string words(const uint8_t* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; i += 4) {
    uint32_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    text += fmt::format(" {:08x}", word);
  }
  return text;
}

TEST(EmulatedInstructions, HaveTheProcessorsBits) {
  const Instructions real = of_processor(), emulated = computed();
  ASSERT_EQ(real.count, emulated.count);
  int tried = 0;
  for (size_t i = 0; i < real.count; ++i) {
    const Instruction& one = real.first[i];
    ASSERT_STREQ(one.name, emulated.first[i].name);
    if (!machine_has(one.extension)) continue;
    ++tried;
    std::mt19937_64 draws(1 + i);
    for (int draw_number = 0; draw_number < 2000; ++draw_number) {
      Operands in;
      draw(draws, one.kind, in.a);
      draw(draws, one.kind, in.b);
      draw(draws, one.kind, in.c);
      in.mask = draws();
      Written expected{}, found{};
      one.run(in, expected);
      emulated.first[i].run(in, found);
      if (equal(expected, found, one.kind)) continue;
      ADD_FAILURE() << one.name << ", mask " << in.mask << "\na" << words(in.a, 64) << "\nb"
                    << words(in.b, 64) << "\nc" << words(in.c, 64) << "\nprocessor"
                    << words(expected.bytes, 64) << "\ncomputed " << words(found.bytes, 64);
      break;
    }
  }
  if (tried == 0) GTEST_SKIP() << "this machine has none of the instructions";
  fmt::print("{} of {} instructions tried\n", tried, real.count);
}

}  // namespace
}  // namespace fullbore::emulated
