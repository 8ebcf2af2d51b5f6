#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/ops/ops.h"

namespace fullbore {

/// How a parameter starts. Filled on the host from (seed, name), so that a parameter's first value
/// does not depend on which others exist.
struct Initializer {
  enum class Kind : uint8_t { zeros, ones, normal, uniform, given, orthogonal };
  Kind kind = Kind::zeros;
  double a = 0;  ///< normal: mean; uniform: low; orthogonal: gain
  double b = 0;  ///< normal: standard deviation; uniform: high
  std::vector<double> values = {};
  double (*then)(double) = nullptr;  ///< applied to every value

  static Initializer zeros() { return {}; }
  static Initializer ones() { return {Kind::ones}; }
  static Initializer normal(double deviation, double mean = 0) {
    return {Kind::normal, mean, deviation};
  }
  static Initializer uniform(double low, double high) { return {Kind::uniform, low, high}; }
  static Initializer given(std::vector<double> values) {
    return {Kind::given, 0, 0, std::move(values)};
  }
  /// Matrices only: the rows, or the columns if there are fewer, are orthogonal vectors of length `gain`, evenly
  /// distributed over all such. Saxe, McClelland, Ganguli 2014, arXiv:1312.6120, section 3. Takes time in
  /// proportion to the elements times the lesser extent.
  static Initializer orthogonal(double gain) { return {Kind::orthogonal, gain}; }
};

class CarriedState;
class FrozenScope;
class SharedScope;

/// One run of the user's function, writing ir. Holds the graph under construction, the State it
/// declares, the random source, and whether this is a training or an evaluation trace.
class Trace {
 public:
  Trace(std::string name, bool training);

  GraphBuilder& builder() { return builder_; }
  bool training() const { return training_; }

  Tensor batch(const std::string& name, TensorType type);
  /// State of any role; asking again for the same name gives the same tensor, and
  /// with another type or role is a UsageError.
  Tensor state(const std::string& name, Role role, TensorType type, Initializer initializer,
               SourceLoc loc = SourceLoc::here());
  /// Parameter `name` within the current scope: "layers.0.attention.query.weight". Frozen where a FrozenScope says so.
  /// UsageError: the name is empty or, where layers are distinct (distinct_layers.h), taken and not shared.
  Tensor parameter(const std::string& name, Shape shape, Initializer initializer,
                   SourceLoc loc = SourceLoc::here());
  /// What follows is the model anew, on another part of the batch: its layers take the same names once more.
  void begin_model() { taken_.clear(); }
  /// The parameters declared so far, in order; frozen ones are not among them.
  struct Parameter {
    std::string name;
    Tensor tensor;
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::map<std::string, Initializer>& initializers() const { return initializers_; }

  /// Is a parameter of this full name declared frozen here? Then the dtype that it is stored in, for one of `dtype`.
  std::optional<DType> frozen_as(const std::string& name, DType dtype) const;

  /// A draw site: seed and step from State, a number of its own, and the iteration if one is set.
  RandomSource random();
  /// What is traced between two calls of draw_sites() and repeat_draws() draws what will be traced next draws too.
  int64_t draw_sites() const { return next_site_; }
  void repeat_draws(int64_t sites) { next_site_ = sites; }
  /// What is traced from here on runs once per iteration of a loop, and draws anew on each: its i64 index,
  /// or an empty tensor for none. State is then given as the body's own inputs: what is computed from
  /// it alone (a broadcast bias) has to be in the body too, or gradients taken there would not see it.
  void set_iteration(Tensor iteration) { iteration_ = iteration; }
  Tensor iteration() const { return iteration_; }
  /// Has anything been said yet about what the step leaves behind?
  bool has_outputs() const { return !updates_.empty() || !results_.empty(); }

  /// This replay's new value of a State tensor. At most once per tensor; UsageError.
  void update(Tensor state, Tensor next, SourceLoc loc = SourceLoc::here());
  /// A named result.
  void result(const std::string& name, Tensor value);
  /// Ends the trace.
  Graph finish();

 private:
  friend class CarriedState;
  friend class FrozenScope;
  friend class SharedScope;
  void take_name(const std::string& name, SourceLoc loc);
  Tensor in_iteration(Tensor state) const;

  GraphBuilder builder_;
  bool training_;
  int64_t next_site_ = 0;
  Tensor iteration_;
  std::vector<Parameter> parameters_;
  std::map<std::string, Tensor> states_;
  std::map<std::string, Initializer> initializers_;
  struct Update {
    Tensor state;
    Tensor next;
  };
  std::vector<Update> updates_;
  std::vector<std::pair<std::string, Tensor>> results_;
  std::map<std::string, std::string>
      taken_;                               ///< names of parameters, and the line that asked first
  int sharing_ = 0;                         ///< SharedScopes that live
  std::vector<const FrozenScope*> frozen_;  ///< those that live
  CarriedState* carried_ = nullptr;         ///< the innermost that lives
};

/// While it lives, what the trace writes runs once per iteration of a loop and draws anew on each. Loops within loops
/// count their iterations together.
class IterationScope {
 public:
  /// index: i64 [], of `iterations`.
  IterationScope(Trace& trace, Tensor index, int64_t iterations);
  ~IterationScope() { trace_.set_iteration(outer_); }
  IterationScope(const IterationScope&) = delete;
  IterationScope& operator=(const IterationScope&) = delete;

 private:
  Trace& trace_;
  Tensor outer_;
};

/// State that a loop carries: while it lives, in the body, asking for one of these by name gives what the iteration
/// before has left of it, and update() says what this one leaves. The loop carries next() on.
class CarriedState {
 public:
  struct Entry {
    std::string name;
    Tensor value;  ///< as the iteration finds it
  };
  CarriedState(Trace& trace, std::vector<Entry> entries)
      : trace_(trace), entries_(std::move(entries)), outer_(trace.carried_) {
    trace_.carried_ = this;
  }
  ~CarriedState() { trace_.carried_ = outer_; }
  CarriedState(const CarriedState&) = delete;
  CarriedState& operator=(const CarriedState&) = delete;

  /// In the order given.
  std::vector<Tensor> next() const;

 private:
  friend class Trace;
  Trace& trace_;
  std::vector<Entry> entries_;
  CarriedState* outer_;
};

/// Names the module whose parameters and nodes follow, while it lives.
class Scope {
 public:
  Scope(Trace& trace, std::string name) : trace_(trace) {
    trace_.builder().push_scope(std::move(name));
  }
  ~Scope() { trace_.builder().pop_scope(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Trace& trace_;
};

/// While it lives, a layer may take the name of another one, and then has its weights:
///
///     const SharedScope shared = share(trace);
///     Tensor again = nn::linear(trace, "encoder", y, 64);
class SharedScope {
 public:
  explicit SharedScope(Trace& trace) : trace_(trace) { ++trace_.sharing_; }
  ~SharedScope() { --trace_.sharing_; }
  SharedScope(const SharedScope&) = delete;
  SharedScope& operator=(const SharedScope&) = delete;

 private:
  Trace& trace_;
};
[[nodiscard]] inline SharedScope share(Trace& trace) { return SharedScope(trace); }

/// While it lives, parameters that the trace is asked for are constants of the step: State of role `frozen`. They have
/// no gradient, no moments, no moving average and no weight decay, and no activation is kept for the gradient that they
/// do not have: the backward pass visits what lies between the loss and trained parameters alone (autodiff/backward.h).
///
/// patterns   of whole names: `*` stands for any characters, `?` for one; without them, all
/// storage    the floating dtype that a parameter of that name is stored in (bf16, f16), from which it is cast where it
///            is used; empty, or none: that which the model asks for
///
/// A parameter asked for in such a scope and outside of any is a UsageError: it is either.
class FrozenScope {
 public:
  using Storage = std::function<std::optional<DType>(const std::string& name)>;
  explicit FrozenScope(Trace& trace) : FrozenScope(trace, {"*"}) {}
  FrozenScope(Trace& trace, std::vector<std::string> patterns, Storage storage = {})
      : trace_(trace), patterns_(std::move(patterns)), storage_(std::move(storage)) {
    trace_.frozen_.push_back(this);
  }
  ~FrozenScope() { trace_.frozen_.pop_back(); }
  FrozenScope(const FrozenScope&) = delete;
  FrozenScope& operator=(const FrozenScope&) = delete;

 private:
  friend class Trace;
  Trace& trace_;
  std::vector<std::string> patterns_;
  Storage storage_;
};

/// Fills `data` with the parameter's first values: element i is a function of seed, name and i.
void initialize(const Initializer& initializer, const TensorType& type, uint64_t seed,
                const std::string& name, void* data);
/// Elements begin to end alone, the first of them at `data`. Several threads may draw parts at once. Not of an
/// orthogonal matrix, which is drawn whole.
void initialize_part(const Initializer& initializer, const TensorType& type, uint64_t seed,
                     const std::string& name, int64_t begin, int64_t end, void* data);

}  // namespace fullbore
