#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace fullbore {

/// Bytes of a mapped file, as long as they are mapped, by whose addresses a fault tells its name.
class MappedRange {
 public:
  MappedRange(const std::string& path, std::span<const std::byte> bytes);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  struct Slot;
  friend struct MappedFaults;
  Slot* slot_;
};

/// From here on a SIGBUS at an address of a mapped file (its file was made shorter, or its disk fails) ends the process with
/// the file's name on stderr and ExitCode::kData, in place of a signal that names nothing. Every other SIGBUS goes to
/// whoever had it before. For a program's main: a library installs no handlers. What was printed and not flushed is lost,
/// and no destructor runs, as with the signal.
void report_mapped_faults();

}  // namespace fullbore
