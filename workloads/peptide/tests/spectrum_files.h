#pragma once
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide::testing {

/// All spectra of a file, or the failure that reading ended with.
struct FileContents {
  std::vector<Spectrum> spectra;
  std::string error;
};

inline FileContents read_file(const std::string& path, const SpectrumReadOptions& options = {}) {
  FileContents contents;
  auto reader = open_spectra(path, options);
  if (!reader.ok()) {
    contents.error = reader.error();
    return contents;
  }
  Spectrum spectrum;
  for (;;) {
    const Result<bool> more = reader.value()->next(spectrum);
    if (!more.ok()) contents.error = more.error();
    if (!more.ok() || !more.value()) return contents;
    contents.spectra.push_back(spectrum);
  }
}

/// The text as a file of that name.
inline FileContents read_text_as(const std::string& name, const std::string& text,
                                 const SpectrumReadOptions& options = {}) {
  const fullbore::testing::ScratchFolder folder;
  FileContents contents = read_file(folder.put(name, text), options);
  // Paths differ from run to run.
  if (contents.error.starts_with(folder.path())) contents.error.erase(0, folder.path().size() + 1);
  return contents;
}

inline std::string deflated(const std::string& text, bool as_gzip) {
  z_stream stream{};
  EXPECT_EQ(
      deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + (as_gzip ? 16 : 0), 9, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}
inline std::string gzipped(const std::string& text) { return deflated(text, true); }

inline std::string base64(const std::string& bytes) {
  constexpr const char* kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = (group << 8) | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? kAlphabet[(group >> (18 - 6 * j)) & 63] : '=';
  }
  return text;
}

}  // namespace fullbore::peptide::testing
