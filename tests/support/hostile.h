#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/support/job.h"

namespace fullbore {

/// How a limited run of the command ended. `exit_code` is 128 + n after signal n.
struct LimitedResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// Runs the binary in `folder` with `environment` ("NAME=value", or "NAME" to unset) beside what there is,
/// with an address space and a time that end it where a hostile file would take more.
LimitedResult run_limited(const std::string& folder, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment = {},
                          uint64_t address_space = uint64_t{3} << 30);
/// Does run_limited() limit memory? Not with sanitizers, which reserve terabytes.
bool limits_memory();

/// Every file, folder and link below a folder, with kind, mode and contents, one a line, but for those whose
/// relative path begins with one of `except`.
std::string snapshot(const std::string& folder, const std::vector<std::string>& except = {});

/// A user with files (victim/), a place to work in (work/) and the run folder of a stranger (gift/), which
/// is a sound one: 20 steps of a tiny model, to be spoilt.
class HostileTest : public JobTest {
 public:
  HostileTest();
  using JobTest::folder_;

  std::string gift(const std::string& name = "") const { return folder_ / ("gift/" + name); }
  /// Its newest checkpoint.
  std::string checkpoint(const std::string& name = "") const;
  std::string victim(const std::string& name = "") const { return folder_ / ("victim/" + name); }
  /// Replaces a file of the gift, or makes it.
  void write(const std::string& path, const std::string& contents) const;
  /// Replaces text in a file; it is there.
  void replace(const std::string& path, const std::string& from, const std::string& to) const;
  /// In place of whatever is there.
  void link(const std::string& path, const std::string& target) const;
  void pipe(const std::string& path) const;
  /// Makes the manifest say what the checkpoint's files are now: the stranger knows how.
  void sign_checkpoint() const;
  /// A safetensors file: header and data.
  void write_weights(const std::string& header, const std::string& data) const;
  /// A copy of the cache of all tests whose entries are code that stops at once, and broken plans, under the stranger's key.
  /// With `keyed` false as versions without a key wrote them.
  void plant_cache(const std::string& folder, bool keyed) const;
  /// The state folder, for XDG_STATE_HOME, of whoever has the stranger's key.
  std::string state_of_stranger() const;
};

}  // namespace fullbore
