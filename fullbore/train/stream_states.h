#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fullbore/ckpt/checkpoint.h"
#include "fullbore/runtime/state.h"

namespace fullbore {

/// What is known of a text besides what the model remembers.
struct StreamText {
  int64_t tokens = 0;      ///< read so far
  int64_t made = 0;        ///< tokens drawn so far
  int32_t pending = -1;    ///< a token that was made and is not read yet; -1: none
  uint64_t seed = 0;       ///< of its draws
  uint64_t stream = 0;     ///< likewise
  std::vector<bool> seen;  ///< by token: does the text hold it? For the repetition penalty
  bool operator==(const StreamText&) const = default;
};

/// What a recurrent model remembers of some streams, apart from any program: of constant size, however long the
/// texts. A value: copying is cloning.
class StreamStates {
 public:
  StreamStates() = default;
  /// Streams that begin: zeros. `entries`: those of role `stream`, [S,...] all; others are passed over.
  StreamStates(std::span<const StateEntry> entries, int64_t vocabulary);

  int64_t streams() const { return static_cast<int64_t>(texts_.size()); }
  int64_t bytes_per_stream() const;  ///< of what the model remembers
  StreamText& text(int64_t stream) { return texts_[static_cast<size_t>(stream)]; }
  const StreamText& text(int64_t stream) const { return texts_[static_cast<size_t>(stream)]; }

  /// Copies the entries out of a State, and back into it. Names and types must be the same.
  void take_from(const State& state);
  void put_to(State& state) const;

  /// Stream `stream` begins again, with zeros; its seed and random stream stay. Where first states are learned,
  /// scatter() those of a stream that has just begun instead.
  void reset(int64_t stream);
  /// These streams, in this order; one may be named several times.
  StreamStates gather(std::span<const int64_t> streams) const;
  /// Stream i becomes stream streams[i] of `to`, which must be of the same model.
  void scatter(std::span<const int64_t> streams, StreamStates& to) const;

  /// Empty if these streams can go on in `others`' place, but for their number; else what differs.
  std::string difference(const StreamStates& others) const;

  bool operator==(const StreamStates& other) const;

 private:
  friend Status save_streams(const std::string&, const StreamStates&, const std::string&,
                             FileSystem&);
  friend Result<StreamStates> load_streams(const std::string&, const StreamStates&,
                                           const std::string&, Verify);
  struct Tensor {
    std::string name;
    TensorType type;  ///< [S,...]
    std::vector<char> bytes;
    size_t row_bytes() const { return bytes.size() / static_cast<size_t>(type.shape[0]); }
    bool operator==(const Tensor&) const = default;
  };
  StreamStates resized(int64_t streams) const;
  std::vector<Tensor> tensors_;
  std::vector<StreamText> texts_;
};

/// How the State of programs that generate names what streams remember, and what they begin with if that is learned.
inline const std::string kGeneratedStreams = "generated.";
inline const std::string kFirstStates = "initial.";
/// All streams of the State begin: with `initial.<name>`, [...], where there is such an entry, or else zeros.
void begin_streams(State& state);

/// Writes a safetensors file (ckpt/checkpoint.h: atomically, with checksums) that holds the tensors under their
/// names and, of each stream, `text.tokens`, `text.made`, `text.seed`, `text.stream` i64 [S], `text.pending` i32
/// [S] and `text.seen` u8 [S,V]. Metadata: `fullbore.streams` "1", the version, and `model`: what model the
/// streams are of. Failure names the path and the system's reason.
Status save_streams(const std::string& path, const StreamStates& streams, const std::string& model,
                    FileSystem& files = system_files());

/// Reads it back, to the same bits. `like`: streams of the model that is to go on with them, any number. Failure
/// names the path and what is wrong: torn or altered, another version, of another model, a tensor that is missing,
/// unknown or of another type, counts below zero, tokens outside the vocabulary.
Result<StreamStates> load_streams(const std::string& path, const StreamStates& like,
                                  const std::string& model, Verify verify = Verify::kEverything);

}  // namespace fullbore
