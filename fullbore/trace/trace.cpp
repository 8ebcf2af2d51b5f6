#include "fullbore/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/text.h"
#include "fullbore/trace/distinct_layers.h"

namespace fullbore {
namespace {

// Initial values that are made at a time.
constexpr int64_t kBlock = 512;

// Elements begin .. begin + out.size(); `draws` stand at the tensor's first one.
void first_values(const Initializer& initializer, PhiloxStream draws, int64_t begin,
                  std::span<double> out) {
  const double a = initializer.a;
  const double b = initializer.b;
  switch (initializer.kind) {
    case Initializer::Kind::zeros: std::ranges::fill(out, 0.0); break;
    case Initializer::Kind::ones: std::ranges::fill(out, 1.0); break;
    case Initializer::Kind::normal:
      draws.skip(2 * static_cast<uint64_t>(begin));
      draws.normals(out);
      for (double& value : out) value = a + b * value;
      break;
    case Initializer::Kind::uniform:
      draws.skip(static_cast<uint64_t>(begin));
      draws.uniforms(out);
      for (double& value : out) value = a + (b - a) * value;
      break;
    case Initializer::Kind::given:
      std::copy_n(initializer.values.begin() + begin, out.size(), out.begin());
      break;
    case Initializer::Kind::orthogonal:
      FB_CHECK(false, "orthogonal matrices are made whole");
      break;
  }
  if (initializer.then != nullptr)
    for (double& value : out) value = initializer.then(value);
}

// `count` orthogonal rows of `width` numbers, of length `gain`: those of normal draws, each made orthogonal to the
// ones before (Gram, Schmidt; twice, against rounding).
std::vector<double> orthogonal_rows(PhiloxStream draws, int64_t count, int64_t width, double gain) {
  const auto columns = static_cast<size_t>(width);
  std::vector<double> rows(static_cast<size_t>(count) * columns);
  draws.normals(rows);
  const auto row = [&](size_t i) { return std::span<double>(rows).subspan(i * columns, columns); };
  const auto product = [](std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const std::span<double> own = row(i);
    for (size_t before = 0; before < 2 * i; ++before) {
      const std::span<const double> other = row(before % i);
      const double along = product(own, other);
      for (size_t c = 0; c < columns; ++c) own[c] -= along * other[c];
    }
    const double length = std::sqrt(product(own, own));
    for (double& value : own) value /= length;
  }
  for (double& value : rows) value *= gain;
  return rows;
}

std::vector<double> orthogonal_matrix(const PhiloxStream& draws, const Shape& shape, double gain) {
  const int64_t rows = shape[0], columns = shape[1];
  if (rows <= columns) return orthogonal_rows(draws, rows, columns, gain);
  const std::vector<double> turned = orthogonal_rows(draws, columns, rows, gain);
  std::vector<double> values(turned.size());
  for (int64_t i = 0; i < rows * columns; ++i)
    values[static_cast<size_t>(i)] =
        turned[static_cast<size_t>((i % columns) * rows + i / columns)];
  return values;
}

void store(std::span<const double> values, DType dtype, void* data, int64_t begin) {
  if (dtype == DType::f32) {  // as parameters are
    std::ranges::transform(values, static_cast<float*>(data) + begin,
                           [](double value) { return static_cast<float>(value); });
    return;
  }
  for (size_t i = 0; i < values.size(); ++i)
    store_element(data, dtype, begin + static_cast<int64_t>(i), values[i]);
}

// As store() rounds them: to f32, and from there.
void bf16_normals(PhiloxStream& draws, const Initializer& initializer, std::span<uint16_t> out) {
  float values[kBlock];
  for (; !out.empty(); out = out.subspan(std::min<size_t>(kBlock, out.size()))) {
    const std::span<float> block(values, std::min<size_t>(kBlock, out.size()));
    draws.normals(block, initializer.a, initializer.b);
    std::ranges::transform(block, out.begin(), f32_to_bf16);
  }
}

std::atomic<bool> names_are_distinct = false;

}  // namespace

void set_distinct_layers(bool on) { names_are_distinct = on; }
bool distinct_layers() { return names_are_distinct; }

Trace::Trace(std::string name, bool training) : builder_(std::move(name)), training_(training) {}

Tensor Trace::batch(const std::string& name, TensorType type) {
  return builder_.input(name, Role::batch, std::move(type));
}

Tensor Trace::state(const std::string& name, Role role, TensorType type, Initializer initializer,
                    SourceLoc loc) {
  if (role == Role::parameter)
    if (const std::optional<DType> stored = frozen_as(name, type.dtype)) {
      const DType wanted = std::exchange(type.dtype, *stored);
      const Tensor frozen = state(name, Role::frozen, std::move(type), std::move(initializer), loc);
      return frozen.dtype() == wanted ? frozen : cast(frozen, wanted, loc);
    }
  if (carried_ != nullptr)
    for (const CarriedState::Entry& entry : carried_->entries_)
      if (entry.name == name) {
        if (entry.value.type() != type)
          throw UsageError(fmt::format("'{}' is carried as {}, not {}", name,
                                       entry.value.type().text(), type.text()),
                           loc);
        return entry.value;
      }
  const auto known = states_.find(name);
  if (known != states_.end()) {
    const Graph& graph = builder_.graph();
    const Graph::Input& input = graph.inputs()[static_cast<size_t>(graph.find_input(name))];
    if (known->second.type() != type || input.role != role)
      throw UsageError(
          fmt::format("state '{}' is {} {} here and {} {} elsewhere", name, role_name(role),
                      type.text(), role_name(input.role), known->second.type().text()),
          loc);
    return in_iteration(known->second);
  }
  const Tensor tensor = builder_.input(name, role, std::move(type));
  states_.emplace(name, tensor);
  initializers_.emplace(name, std::move(initializer));
  if (role == Role::parameter) parameters_.push_back({name, tensor});
  return in_iteration(tensor);
}

std::optional<DType> Trace::frozen_as(const std::string& name, DType dtype) const {
  for (auto scope = frozen_.rbegin(); scope != frozen_.rend(); ++scope) {
    const bool matches = std::ranges::any_of((*scope)->patterns_, [&](const std::string& pattern) {
      return pattern_distance(pattern, name) == 0;
    });
    if (matches) return (*scope)->storage_ ? (*scope)->storage_(name).value_or(dtype) : dtype;
  }
  return std::nullopt;
}

Tensor Trace::in_iteration(Tensor state) const {
  return iteration_.valid() ? iteration_.builder().import(state) : state;
}

Tensor Trace::parameter(const std::string& name, Shape shape, Initializer initializer,
                        SourceLoc loc) {
  const std::string scope = builder_.scope();
  const std::string full_name = scope.empty() ? name : scope + "." + name;
  take_name(full_name, loc);
  return state(full_name, Role::parameter, {DType::f32, std::move(shape)}, std::move(initializer),
               loc);
}

void Trace::take_name(const std::string& name, SourceLoc loc) {
  if (name.empty() || name.back() == '.' || name.find("(unnamed)") != std::string::npos)
    throw UsageError(fmt::format("a layer or parameter has no name, which gives '{}'", name), loc);
  if (frozen_as(name, DType::f32)) return;  // one network of given weights, however often it is run
  const auto [known, is_new] = taken_.emplace(name, loc.text());
  if (!is_new && sharing_ == 0 && distinct_layers())
    throw UsageError(
        fmt::format("parameter '{}' is that of another layer already{}: give this layer a name of "
                    "its own, or say share(trace) where both mean the same weights",
                    name, known->second.empty() ? "" : ", at " + known->second),
        loc);
}

RandomSource Trace::random() {
  const TensorType scalar{DType::i64, {}};
  return {state("random.seed", Role::control, scalar, Initializer::zeros()),
          state("step", Role::control, scalar, Initializer::zeros()), next_site_++, iteration_};
}

void Trace::update(Tensor state, Tensor next, SourceLoc loc) {
  const GraphBuilder& owner = state.builder(loc);
  if (carried_ != nullptr)
    for (CarriedState::Entry& entry : carried_->entries_)
      if (&entry.value.builder() == &owner && entry.value.value() == state.value()) {
        entry.value = next;
        return;
      }
  const auto is_state = [&](const auto& known) { return known.second.value() == state.value(); };
  if (std::none_of(states_.begin(), states_.end(), is_state))
    throw UsageError("an update of what is no State", loc);
  for (const Update& known : updates_)
    if (known.state.value() == state.value())
      throw UsageError("State is updated twice in one step", loc);
  if (next.type(loc) != state.type(loc))
    throw UsageError(
        fmt::format("State {} is updated by {}", state.type(loc).text(), next.type(loc).text()),
        loc);
  updates_.push_back({state, next});
}

void Trace::result(const std::string& name, Tensor value) { results_.emplace_back(name, value); }

Graph Trace::finish() {
  for (const auto& [name, value] : results_) builder_.output(name, value);
  for (const Update& change : updates_) {
    const auto& inputs = builder_.graph().inputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].value == change.state.value())
        builder_.output(inputs[i].name, change.next, static_cast<int>(i));
  }
  return builder_.take();
}

std::vector<Tensor> CarriedState::next() const {
  std::vector<Tensor> values;
  for (const Entry& entry : entries_) values.push_back(entry.value);
  return values;
}

IterationScope::IterationScope(Trace& trace, Tensor index, int64_t iterations)
    : trace_(trace), outer_(trace.iteration()) {
  trace_.set_iteration(outer_.valid() ? outer_ * static_cast<double>(iterations) + index : index);
}

void initialize(const Initializer& initializer, const TensorType& type, uint64_t seed,
                const std::string& name, void* data) {
  if (initializer.kind != Initializer::Kind::orthogonal)
    return initialize_part(initializer, type, seed, name, 0, type.elements(), data);
  FB_CHECK(type.shape.rank() == 2, "'{}' of {} is no matrix to be orthogonal", name, type.text());
  store(orthogonal_matrix(PhiloxStream(seed, hash_text(name)), type.shape, initializer.a),
        type.dtype, data, 0);
}

void initialize_part(const Initializer& initializer, const TensorType& type, uint64_t seed,
                     const std::string& name, int64_t begin, int64_t end, void* data) {
  FB_CHECK(initializer.kind != Initializer::Kind::given ||
               static_cast<int64_t>(initializer.values.size()) == type.elements(),
           "{} initial values for '{}' of {}", initializer.values.size(), name, type.text());
  FB_CHECK(initializer.kind != Initializer::Kind::orthogonal, "a part of '{}'", name);
  const PhiloxStream draws(seed, hash_text(name));
  if (initializer.kind == Initializer::Kind::normal && initializer.then == nullptr) {
    // Most are, and go without a detour.
    PhiloxStream own = draws;
    own.skip(2 * static_cast<uint64_t>(begin));
    const auto count = static_cast<size_t>(end - begin);
    if (type.dtype == DType::f32)
      return own.normals({static_cast<float*>(data), count}, initializer.a, initializer.b);
    if (type.dtype == DType::bf16)
      return bf16_normals(own, initializer, {static_cast<uint16_t*>(data), count});
  }
  double values[kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    const std::span<double> block(values, static_cast<size_t>(std::min(kBlock, end - at)));
    first_values(initializer, draws, at, block);
    store(block, type.dtype, data, at - begin);
  }
}

}  // namespace fullbore
