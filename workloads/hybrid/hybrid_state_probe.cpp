#include "workloads/hybrid/hybrid_state_probe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "workloads/hybrid/state_statistics.h"

namespace fullbore {
namespace {

constexpr int64_t kLargest = 5;  // singular values
constexpr double kBeyond = 5;
constexpr size_t kBetweenCosines = 16;  // tokens; they cost more than the rest

TensorMemory memory_of(const TensorType& type) {
  TensorMemory memory = allocate_tensor_memory(type.bytes());
  if (!memory) throw std::bad_alloc();
  return memory;
}

/// The model over one token of each text, from states to states.
class Reader {
 public:
  Reader(const HybridConfig& config, TrainedModel& model, int64_t texts)
      : tensors_(hybrid_state_tensors(config, texts)),
        tokens_(memory_of({DType::i32, {texts}})),
        program_(
            Program::compile(traced(config, texts), model.state, trained_options(model.config))) {
    for (const HybridStateTensor& each : tensors_) states_.push_back(memory_of(each.type));
  }

  /// Takes the next token of each text.
  void read(const ProbeTexts& texts, size_t at) {
    auto* const tokens = static_cast<int32_t*>(static_cast<void*>(tokens_.get()));
    for (size_t text = 0; text < texts.size(); ++text) tokens[text] = texts[text][at];
    std::vector<const void*> batch = {tokens_.get()};
    for (const TensorMemory& state : states_) batch.push_back(state.get());
    program_.run(batch);
    for (size_t i = 0; i < states_.size(); ++i)
      program_.read_result(program_.output(tensors_[i].name),
                           {reinterpret_cast<std::byte*>(states_[i].get()),
                            static_cast<size_t>(tensors_[i].type.bytes())});
  }

  const std::vector<HybridStateTensor>& tensors() const { return tensors_; }
  /// What tensor `index` holds of a text.
  std::span<const float> of_text(size_t index, size_t text) const {
    const TensorType& type = tensors_[index].type;
    const auto each = static_cast<size_t>(type.elements() / type.shape[0]);
    const auto* const values = static_cast<const float*>(static_cast<void*>(states_[index].get()));
    return {values + text * each, each};
  }

 private:
  static Graph traced(const HybridConfig& config, int64_t texts) {
    Trace trace("probe", false);
    HybridInputs inputs{.tokens = trace.batch("tokens", {DType::i32, {texts, 1}})};
    const std::vector<HybridStateTensor> tensors = hybrid_state_tensors(config, texts);
    std::vector<Tensor> before;
    for (const HybridStateTensor& each : tensors)
      before.push_back(trace.batch(each.name, each.type));
    inputs.state = hybrid_state(config, before);
    const HybridResult made = hybrid(trace, inputs, config);
    const std::vector<Tensor> behind = hybrid_tensors(config, made.state);
    for (size_t i = 0; i < tensors.size(); ++i) trace.result(tensors[i].name, behind[i]);
    return trace.finish();
  }

  std::vector<HybridStateTensor> tensors_;
  TensorMemory tokens_;
  std::vector<TensorMemory> states_;
  Program program_;
};

/// Watches the memories of one branch, those whose names end in `suffix`.
class Watch {
 public:
  Watch(const Reader& reader, std::string_view suffix, size_t texts)
      : reader_(reader), texts_(texts) {
    for (size_t i = 0; i < reader.tensors().size(); ++i)
      if (reader.tensors()[i].name.ends_with(suffix)) members_.push_back(i);
  }

  void begin(size_t at) {
    before_.clear();
    if (at % kBetweenCosines != kBetweenCosines - 1) return;
    each(
        [&](std::span<const float> values) { before_.emplace_back(values.begin(), values.end()); });
  }
  void end() {
    double norms = 0;
    for (size_t text = 0; text < texts_; ++text) {
      double squares = 0;
      for (const size_t member : members_)
        squares += std::pow(norm_of(reader_.of_text(member, text)), 2);
      norms += std::sqrt(squares);
    }
    found_.norms.push_back(norms / static_cast<double>(texts_));
    found_.finite = found_.finite && std::isfinite(norms);
    size_t i = 0;
    if (!before_.empty())
      each([&](std::span<const float> values) { add_cosine(cosine_of(before_[i++], values)); });
  }

  BranchMemory finish() {
    found_.cosine = cosines_ == 0 ? 0 : found_.cosine / static_cast<double>(cosines_);
    const auto members = static_cast<double>(members_.size());
    for (const size_t member : members_) {
      std::vector<std::span<const float>> rows;
      for (size_t text = 0; text < texts_; ++text) rows.push_back(reader_.of_text(member, text));
      found_.variance += variance_across(rows) / members;
      found_.top_singular += singular_share(member) / members;
      found_.saturated += share_beyond(rows.front(), kBeyond) / members;
      // The last text is the first one again.
      const std::span<const float> again = reader_.of_text(member, texts_);
      found_.repeatable = found_.repeatable && std::ranges::equal(rows.front(), again);
    }
    return found_;
  }

 private:
  template <class Use>
  void each(const Use& use) const {
    for (const size_t member : members_)
      for (size_t text = 0; text < texts_; ++text) use(reader_.of_text(member, text));
  }
  void add_cosine(double cosine) {
    found_.cosine += cosine;
    ++cosines_;
  }
  // Of the first text, mean over the heads; a state without heads is one matrix.
  double singular_share(size_t member) const {
    const Shape& shape = reader_.tensors()[member].type.shape;
    const int64_t heads = shape.rank() == 4 ? shape[1] : 1;
    const int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
    const std::span<const float> values = reader_.of_text(member, 0);
    double sum = 0;
    for (int64_t head = 0; head < heads; ++head)
      sum += top_singular_share(values.subspan(static_cast<size_t>(head * rows * columns),
                                               static_cast<size_t>(rows * columns)),
                                rows, columns, kLargest);
    return sum / static_cast<double>(heads);
  }

  const Reader& reader_;
  size_t texts_;
  std::vector<size_t> members_;
  std::vector<std::vector<float>> before_;
  BranchMemory found_;
  size_t cosines_ = 0;
};

}  // namespace

StateProbe probe_states(const HybridConfig& config, TrainedModel& model, const ProbeTexts& texts) {
  ProbeTexts read = texts;
  read.push_back(texts.front());
  Reader reader(config, model, static_cast<int64_t>(read.size()));
  Watch rwkv(reader, "rwkv.memory", texts.size()), mamba(reader, "mamba.memory", texts.size());
  for (size_t at = 0; at < texts.front().size(); ++at) {
    rwkv.begin(at);
    mamba.begin(at);
    reader.read(read, at);
    rwkv.end();
    mamba.end();
  }
  return {rwkv.finish(), mamba.finish()};
}

double information_flow(const HybridConfig& config, TrainedModel& model, const ProbeTexts& texts) {
  const auto count = static_cast<int64_t>(texts.size());
  const auto length = static_cast<int64_t>(texts.front().size());
  const TensorType type{DType::i32, {2 * count, length}};
  Trace trace("flow", false);
  const HybridResult made = hybrid(trace, {.tokens = trace.batch("tokens", type)}, config);
  LanguageModelHead head = made.head;
  head.hidden = slice(head.hidden, 1, length - 1, length);
  trace.result("logits", language_model_logits(trace, head));
  Program program = Program::compile(trace.finish(), model.state, trained_options(model.config));
  const TensorMemory memory = memory_of(type);
  auto* tokens = static_cast<int32_t*>(static_cast<void*>(memory.get()));
  const auto vocabulary = static_cast<int32_t>(model.tokenizer->vocabulary_size());
  for (const std::vector<int32_t>& text : texts)
    for (const int32_t first : {text.front(), (text.front() + 1) % vocabulary}) {
      std::ranges::copy(text, tokens);
      tokens[0] = first;
      tokens += length;
    }
  const void* const batch[] = {memory.get()};
  program.run(batch);
  const std::vector<float> logits = program.read_result<float>(program.output("logits"));
  const auto width = static_cast<size_t>(config.vocabulary);
  double change = 0;
  for (size_t text = 0; text < texts.size(); ++text) {
    const std::span<const float> as_is(logits.data() + 2 * text * width, width);
    std::vector<float> difference(as_is.begin(), as_is.end());
    for (size_t v = 0; v < width; ++v) difference[v] -= logits[(2 * text + 1) * width + v];
    change += norm_of(difference) / norm_of(as_is) / static_cast<double>(texts.size());
  }
  return change;
}

}  // namespace fullbore
