#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/runtime/state.h"
#include "fullbore/train/config.h"
#include "fullbore/train/run_checkpoints.h"

namespace fullbore {

/// Is an entry of an evaluation's State part of what a model has learned? Parameters, frozen ones, and floating State that
/// evaluations read: running statistics.
bool is_weight(const StateEntry& entry);

/// A table whose rows or columns stand for other things in a checkpoint: each is taken from one of its own.
struct TableOrigins {
  std::string parameter;  ///< here
  std::string source;     ///< there
  /// For each row here its row there, or -1: there is none; empty: all, in order.
  std::vector<int64_t> rows = {};
  std::vector<int64_t> columns = {};  ///< the same of columns, for matrices
};

/// A parameter and the tensor of a checkpoint that fills it.
struct TakenTensor {
  std::string parameter;
  std::string source;
  std::vector<int64_t> rows = {};  ///< as TableOrigins has them
  std::vector<int64_t> columns = {};
};

/// A parameter that keeps its initial values, or a tensor that nothing takes, and why.
struct LeftTensor {
  std::string name;
  std::string reason;
};

/// What a model takes from a checkpoint.
struct WeightTransfer {
  std::vector<TakenTensor> taken;
  std::vector<LeftTensor> left;    ///< parameters here
  std::vector<LeftTensor> unused;  ///< tensors there
  /// Parameters and tensors have one another's names and types; rows and columns may be missing.
  bool is_whole() const { return left.empty() && unused.empty(); }
};

/// The weights of another run, to start from: its parameters, or their moving averages where its
/// train.evaluate says so, and running statistics. Moments, counters and the position in the data are not taken.
class WeightSource {
 public:
  /// `run_or_checkpoint` as checkpoint_of() has it. Made for files of strangers: a link, or a file that
  /// is no regular one, is refused where it leads out of the named folder; texts are read up to 64 MiB,
  /// tensors within what the model takes. DataError: damaged, missing, or in 8 bits.
  static WeightSource open(const std::string& run_or_checkpoint);

  const std::string& path() const { return checkpoint_.folder.path(); }
  const RunRecord& record() const { return checkpoint_.record; }
  const Config& config() const { return config_; }  ///< of the run
  bool ema() const { return ema_; }
  /// Its tensor of a parameter: shape and dtype; nullptr: it has none.
  const TensorType* find(const std::string& parameter) const;

  /// What weights (is_weight()) among `entries` take: the tensor of the same name and type, or what `tables` say of it.
  WeightTransfer plan(const std::vector<StateEntry>& entries,
                      const std::vector<TableOrigins>& tables) const;
  /// Fills what the transfer takes. DataError if a file cannot be read.
  void fill(const WeightTransfer& transfer, State& state) const;

 private:
  struct Stored {
    std::string parameter;
    size_t file;
    size_t tensor;
    bool is_optional = false;
  };
  /// Files behind the first `required_files` hold what nobody misses.
  WeightSource(OpenedCheckpoint checkpoint, Config config, std::vector<Checkpoint> files,
               size_t required_files);
  const Stored* stored(const std::string& parameter) const;
  void fill_table(const TakenTensor& taken, const TensorType& here, char* to) const;
  const StoredTensor& tensor(const Stored& stored) const {
    return files_[stored.file].tensors()[stored.tensor];
  }

  OpenedCheckpoint checkpoint_;
  Config config_;
  bool ema_;
  std::vector<Checkpoint> files_;
  std::vector<Stored> stored_;  ///< in order of parameter
};

/// "taken    a, b.*.c (8)": names in lines of about 100 columns; those that differ in numbers alone are one.
std::vector<std::string> listed_lines(const std::string& word,
                                      const std::vector<std::string>& names);
/// For people, a line each: what was taken, in part, left and unused. Names that differ in numbers alone are one.
std::vector<std::string> transfer_lines(const WeightSource& source, const WeightTransfer& transfer);
/// What a transfer that is not whole lacks, in one sentence.
std::string transfer_differences(const WeightTransfer& transfer);

}  // namespace fullbore
