#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/result.h"
#include "workloads/peptide/spectrum.h"

namespace fullbore::peptide {

/// The spectra that were left out, each with its reason, as a file of columns separated by tabs: file, spectrum
/// (as mzTab names it, or "index=3"), title, line, reason. The file appears, or replaces an older one, at commit();
/// where nothing was left out there is none, and an older one is removed.
class LeftOutList {
 public:
  /// path "": nothing is written.
  explicit LeftOutList(std::string path = "", FileSystem& files = system_files())
      : path_(std::move(path)), files_(&files) {}

  void add(std::string_view file, const Spectrum& spectrum, std::string_view reason);
  /// Failure: of any write so far.
  Status commit();
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  /// "spectra.mgf:12: the spectrum has no charge": the first of those that were bad; "": none was.
  const std::string& first_bad() const { return first_bad_; }

 private:
  Status flush();

  std::string path_;
  FileSystem* files_;
  std::optional<AtomicFile> file_;
  std::string buffer_;
  std::string error_;
  std::string first_bad_;
  uint64_t size_ = 0;
};

}  // namespace fullbore::peptide
