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
struct SequenceText {
  int64_t tokens = 0;      ///< read so far
  int64_t made = 0;        ///< tokens drawn so far
  int32_t pending = -1;    ///< a token that was made and is not read yet; -1: none
  uint64_t seed = 0;       ///< of its draws
  uint64_t stream = 0;     ///< likewise
  std::vector<bool> seen;  ///< by token: does the text hold it? For the repetition penalty
  bool operator==(const SequenceText&) const = default;
};

/// What a recurrent model remembers of some sequences, apart from any program: of constant size, however long the
/// texts. A value: copying is cloning.
class SequenceStates {
 public:
  SequenceStates() = default;
  /// Sequences that begin: zeros. `entries`: those of role `recurrent`, [S,...] all; others are passed over.
  SequenceStates(std::span<const StateEntry> entries, int64_t vocabulary);

  int64_t sequences() const { return static_cast<int64_t>(texts_.size()); }
  int64_t bytes_per_sequence() const;  ///< of what the model remembers
  SequenceText& text(int64_t sequence) { return texts_[static_cast<size_t>(sequence)]; }
  const SequenceText& text(int64_t sequence) const { return texts_[static_cast<size_t>(sequence)]; }

  /// Copies the entries out of a State, and back into it. Names and types must be the same.
  void take_from(const State& state);
  void put_to(State& state) const;

  /// Sequence `sequence` begins again, with zeros; its seed and random stream stay. Where first states are learned,
  /// scatter() those of a sequence that has just begun instead.
  void reset(int64_t sequence);
  /// These sequences, in this order; one may be named several times.
  SequenceStates gather(std::span<const int64_t> sequences) const;
  /// Sequence i becomes sequence sequences[i] of `to`, which must be of the same model.
  void scatter(std::span<const int64_t> sequences, SequenceStates& to) const;

  /// Empty if these sequences can go on in `others`' place, but for their number; else what differs.
  std::string difference(const SequenceStates& others) const;

  bool operator==(const SequenceStates& other) const;

 private:
  friend Status save_sequences(const std::string&, const SequenceStates&, const std::string&,
                               FileSystem&);
  friend Result<SequenceStates> load_sequences(const std::string&, const SequenceStates&,
                                               const std::string&, Verify);
  struct Tensor {
    std::string name;
    TensorType type;  ///< [S,...]
    std::vector<char> bytes;
    size_t row_bytes() const { return bytes.size() / static_cast<size_t>(type.shape[0]); }
    bool operator==(const Tensor&) const = default;
  };
  SequenceStates resized(int64_t sequences) const;
  std::vector<Tensor> tensors_;
  std::vector<SequenceText> texts_;
};

/// How the State of programs that generate names what sequences remember, and what they begin with if that is learned.
inline const std::string kGeneratedStates = "generated.";
inline const std::string kFirstStates = "initial.";
/// All sequences of the State begin: with `initial.<name>`, [...], where there is such an entry, or else zeros.
void begin_sequences(State& state);

/// Writes a safetensors file (ckpt/checkpoint.h: atomically, with checksums) that holds the tensors under their
/// names and, of each sequence, `text.tokens`, `text.made`, `text.seed`, `text.stream` i64 [S], `text.pending` i32
/// [S] and `text.seen` u8 [S,V]. Metadata: `fullbore.sequences` "1", the version, and `model`: what model the
/// sequences are of. Failure names the path and the system's reason.
Status save_sequences(const std::string& path, const SequenceStates& sequences,
                      const std::string& model, FileSystem& files = system_files());

/// Reads it back, to the same bits. `like`: sequences of the model that is to go on with them, any number. Failure
/// names the path and what is wrong: torn or altered, another version, of another model, a tensor that is missing,
/// unknown or of another type, counts below zero, tokens outside the vocabulary.
Result<SequenceStates> load_sequences(const std::string& path, const SequenceStates& like,
                                      const std::string& model,
                                      Verify verify = Verify::kEverything);

}  // namespace fullbore
