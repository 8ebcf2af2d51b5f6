#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/source_loc.h"
#include "fullbore/device/device.h"
#include "fullbore/plan/plan.h"
#include "fullbore/plan/plan_work.h"
#include "fullbore/runtime/arena.h"
#include "fullbore/runtime/host_element.h"
#include "fullbore/runtime/prepare.h"
#include "fullbore/runtime/state.h"

namespace fullbore {

/// A compiled step, bound to a State on that State's device: replayed any number of times without allocating.
/// The State must outlive it and stay where it is. What it reads copies of is copied when that has been
/// written since, be it by other programs or by hand.
class Program {
 public:
  /// Graph -> passes -> plan -> arena. State entries are bound by name, those in 8 bits too
  /// (runtime/quantized_state.h); a missing one or one of another type is a UsageError that names both.
  /// `arena`: to be shared with other programs; by default it has one of its own.
  static Program compile(const Graph& graph, State& state, const CompileOptions& options = {},
                         CompileReport* report = nullptr, std::shared_ptr<Arena> arena = nullptr);
  /// The rest of it, of what other threads may have prepared.
  static Program bind(PreparedProgram prepared, State& state,
                      std::shared_ptr<Arena> arena = nullptr);
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// Runs the step once. `batch`: one pointer per batch input, in the graph's order, 64-byte
  /// aligned memory of the input's type. Returns when results and State are complete. UsageError with the caller's line:
  /// not as many pointers, or memory that is not aligned.
  void run(std::span<const void* const> batch, SourceLoc loc = SourceLoc::here());

  const Plan& plan() const;
  /// Index of a result by name. UsageError with the caller's line: there is none; the nearest name is told.
  int output(std::string_view name, SourceLoc loc = SourceLoc::here()) const;
  const TensorType& result_type(int output) const;
  /// Bytes of a result, those of the last run, from `offset` on. UsageError with the caller's line: it is no result, it is
  /// State, or it has fewer bytes.
  void read_result(int output, std::span<std::byte> to, int64_t offset = 0,
                   SourceLoc loc = SourceLoc::here()) const;
  /// All of it, T being the type of its elements (host_element.h). UsageError likewise, and where they are others.
  template <class T>
  std::vector<T> read_result(int output, SourceLoc loc = SourceLoc::here()) const {
    const int64_t bytes = require_result(output, is_host_element<T>, sizeof(T), loc);
    std::vector<T> values(static_cast<size_t>(bytes) / sizeof(T));
    read_result(output, std::as_writable_bytes(std::span(values)), 0, loc);
    return values;
  }
  template <class T>
  std::vector<T> read_result(std::string_view name, SourceLoc loc = SourceLoc::here()) const {
    return read_result<T>(output(name, loc), loc);
  }
  /// Rank-0 or one-element floating output as double. UsageError with the caller's line.
  double scalar(std::string_view name, SourceLoc loc = SourceLoc::here()) const;

  /// Iterations that loops made in the last run; empty where that depends on data and the device does not say.
  LoopIterations iterations_made() const;
  /// Floating-point operations of the last run, by these: not a number where they are not known. Allocates nothing.
  double flops_made() const;

  /// From the next run on, records when each lane of the device made each launch, inside loops too: for
  /// StepProfile and traces. Allocates the room for it; runs still allocate nothing.
  void set_profiling(bool on);
  /// Of the last run, one entry per lane, empty while not profiling; valid until the next run.
  std::vector<LaneEvents> events() const;

 private:
  /// Its bytes.
  int64_t require_result(int output, bool (*suits)(DType), size_t width, SourceLoc loc) const;

  struct Implementation;
  explicit Program(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace fullbore
