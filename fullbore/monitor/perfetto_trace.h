#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/monitor/trace_file.h"

namespace fullbore {

/// A timeline in Perfetto's own format, Protocol Buffers: a quarter of the JSON's size, read by https://ui.perfetto.dev,
/// its command-line tools and its Python package. Names, keys and texts are interned: each stands in the file once.
/// Source of the format: perfetto/trace/trace_packet.proto, track_event.proto, track_descriptor.proto, interned_data.proto.
class PerfettoTrace : public TraceFile {
 public:
  explicit PerfettoTrace(size_t most_bytes);

  void name_thread(int thread, const std::string& name) override;
  using TraceFile::add;
  /// An event that outlasts the one it begins in is cut off at its end.
  bool add(std::string_view name, int thread, int64_t begin_ns, int64_t end_ns,
           const nlohmann::ordered_json& arguments) override;
  bool add_bytes(std::string_view counter, int64_t ns, int64_t bytes) override;
  /// `about` stands in the labels of the process.
  std::string finish(nlohmann::ordered_json about) const override;

 private:
  /// Texts by number, from 1.
  class Interned {
   public:
    /// The number of a text; `bytes` grows by what a new one takes.
    uint64_t number(std::string_view text, size_t& bytes);
    const std::vector<std::string>& texts() const { return texts_; }

   private:
    std::map<std::string, uint64_t, std::less<>> numbers_;
    std::vector<std::string> texts_;
  };
  struct Slice {
    int thread = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    uint64_t name = 0;
    std::string annotations;  ///< fields of a TrackEvent
  };
  struct Count {
    uint64_t counter = 0;
    int64_t ns = 0;
    int64_t bytes = 0;
  };
  std::string annotations_of(const nlohmann::ordered_json& arguments, size_t& bytes);
  void write_threads(std::string& file) const;
  void write_slices(std::string& file, int64_t first_ns) const;

  size_t most_bytes_;
  size_t bytes_;  ///< that the file has at most, as far as was added
  std::map<int, std::string> threads_;
  Interned names_;
  Interned keys_;
  Interned values_;
  Interned counters_;
  std::vector<Slice> slices_;
  std::vector<Count> counts_;
};

}  // namespace fullbore
