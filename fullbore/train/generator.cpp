#include "fullbore/train/generator.h"

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

// Chunks start at multiples of their length: the caches hold a whole number of them.
int64_t capacity_of(const GeneratorSizes& sizes) {
  return (sizes.context + sizes.chunk - 1) / sizes.chunk * sizes.chunk;
}

GeneratorSizes checked(GeneratorSizes sizes) {
  FB_CHECK(sizes.samples > 0 && sizes.context >= 0 && sizes.chunk > 0, "{} samples, context {}",
           sizes.samples, sizes.context);
  if (sizes.context > 0) sizes.chunk = std::min(sizes.chunk, sizes.context);
  return sizes;
}

// Lengths of exact chunks fall by this factor, and are not below this many: a program for fewer tokens takes longer to
// compile than as many single steps take to run.
constexpr int64_t kChunkFactor = 8;
constexpr int64_t kLeastChunk = 32;

int64_t next_chunk(int64_t chunk) {
  return chunk / kChunkFactor >= kLeastChunk ? chunk / kChunkFactor : 1;
}

}  // namespace

Graph Generator::trace(const DecodeFunction& decode, const GeneratorSizes& sizes, int64_t length) {
  Trace trace("generate", false);
  const Tensor tokens = trace.batch("tokens", {DType::i32, {sizes.samples, length}});
  const Tensor position = trace.batch("position", {DType::i64, {}});
  const Tensor row = trace.batch("row", {DType::i64, {}});
  const Tensor logits = decode(trace, tokens, position, row, capacity_of(checked(sizes)));
  FB_CHECK(logits.rank() == 2 && logits.dim(0) == sizes.samples, "logits {}", logits.type().text());
  trace.result("logits", cast(logits, DType::f32));
  return trace.finish();
}

Generator::Generator(DecodeFunction decode, const GeneratorSizes& sizes, State& state,
                     const CompileOptions& options)
    : decode_(std::move(decode)),
      sizes_(checked(sizes)),
      state_(state),
      options_(options),
      texts_(static_cast<size_t>(sizes.samples)),
      about_(static_cast<size_t>(sizes.samples)) {
  LengthProgram& program = programs_.emplace(1, compile(1)).first->second;
  const Graph& graph = program.program.plan().graph;
  logits_extent_ = graph.type(graph.outputs()[static_cast<size_t>(program.logits)].value).shape[1];
  if (sizes_.vocabulary == 0) sizes_.vocabulary = logits_extent_;
  FB_CHECK(sizes_.vocabulary <= logits_extent_, "{} tokens, {} logits", sizes_.vocabulary,
           logits_extent_);
  last_logits_.resize(static_cast<size_t>(sizes_.samples * logits_extent_));
  const int64_t most = sizes_.samples * sizes_.chunk;
  tokens_.resize(static_cast<size_t>((most + 15) / 16));
  for (SequenceText& text : about_) text.seen.assign(static_cast<size_t>(sizes_.vocabulary), false);
  set_seed(0);
}

Generator::LengthProgram Generator::compile(int64_t length) {
  Program program = Program::compile(trace(decode_, sizes_, length), state_, options_);
  const int logits = program.output("logits");
  return {std::move(program), length, logits};
}

Generator::LengthProgram& Generator::program_for(size_t length) {
  int64_t chunk = sizes_.chunk;
  if (length == 1)
    chunk = 1;
  else if (!has_context())
    while (chunk > static_cast<int64_t>(length)) chunk = next_chunk(chunk);
  const auto known = programs_.find(chunk);
  return known != programs_.end() ? known->second
                                  : programs_.emplace(chunk, compile(chunk)).first->second;
}

void Generator::run(LengthProgram& program, std::span<const int32_t* const> texts, size_t used) {
  auto* rows = reinterpret_cast<int32_t*>(tokens_.data());
  const auto length = static_cast<size_t>(program.length);
  for (const int32_t* text : texts) {
    std::copy_n(text, used, rows);
    std::fill(rows + used, rows + length, 0);
    rows += length;
  }
  place_.value = position_;
  row_.value = static_cast<int64_t>(used) - 1;
  const void* const batch[] = {tokens_.data(), &place_, &row_};
  program.program.run(batch);
  program.program.read_result(program.logits, std::as_writable_bytes(std::span(last_logits_)));
  has_logits_ = true;
  position_ += static_cast<int64_t>(used);
}

void Generator::take(std::vector<const int32_t*> texts, size_t length) {
  while (length > 0) {
    LengthProgram& program = program_for(length);
    const size_t used = std::min(length, static_cast<size_t>(program.length));
    run(program, texts, used);
    for (const int32_t*& text : texts) text += used;
    length -= used;
  }
}

void Generator::take_newest(size_t length) {
  std::vector<const int32_t*> texts;
  for (const std::vector<int32_t>& text : texts_)
    texts.push_back(text.data() + text.size() - length);
  take(std::move(texts), length);
}

void Generator::remember(SequenceText& text, int32_t token) const {
  ++text.tokens;
  if (token >= 0 && token < sizes_.vocabulary) text.seen[static_cast<size_t>(token)] = true;
}

void Generator::begin(std::span<const int32_t> prompt) {
  FB_CHECK(!prompt.empty(), "nothing to continue");
  position_ = 0;
  for (SequenceText& text : about_)
    text = {.seed = text.seed,
            .stream = text.stream,
            .seen = std::vector<bool>(static_cast<size_t>(sizes_.vocabulary), false)};
  if (!has_context()) {
    begin_sequences(state_);
    return extend(prompt);
  }
  for (std::vector<int32_t>& text : texts_) text.assign(prompt.begin(), prompt.end());
  for (SequenceText& text : about_)
    for (const int32_t token : prompt) remember(text, token);
  take_newest(std::min(prompt.size(), static_cast<size_t>(sizes_.context)));
}

void Generator::extend(std::span<const int32_t> tokens) {
  FB_CHECK(!has_context() && !tokens.empty(), "{} tokens, context {}", tokens.size(),
           sizes_.context);
  read_pending();
  for (SequenceText& text : about_)
    for (const int32_t token : tokens) remember(text, token);
  take(std::vector<const int32_t*>(texts_.size(), tokens.data()), tokens.size());
}

void Generator::append(std::span<const int32_t> tokens) {
  FB_CHECK(tokens.size() == texts_.size() && position_ > 0, "{} tokens for {} texts", tokens.size(),
           texts_.size());
  for (size_t i = 0; i < about_.size(); ++i) {
    remember(about_[i], tokens[i]);
    about_[i].pending = -1;
  }
  if (!has_context()) {
    std::vector<const int32_t*> texts;
    for (const int32_t& token : tokens) texts.push_back(&token);
    return take(std::move(texts), 1);
  }
  for (size_t i = 0; i < texts_.size(); ++i) texts_[i].push_back(tokens[i]);
  if (position_ < sizes_.context) return take_newest(1);
  position_ = 0;
  take_newest(static_cast<size_t>(std::max<int64_t>(1, sizes_.context / 2)));
}

std::span<const float> Generator::logits(int64_t sample) const {
  return {last_logits_.data() + sample * logits_extent_, static_cast<size_t>(sizes_.vocabulary)};
}

SequenceStates Generator::sequences() const {
  FB_CHECK(!has_context(), "a model with a context of {} has no sequences", sizes_.context);
  SequenceStates sequences(state_.entries(), sizes_.vocabulary);
  sequences.take_from(state_);
  for (size_t i = 0; i < about_.size(); ++i) sequences.text(static_cast<int64_t>(i)) = about_[i];
  return sequences;
}

void Generator::resume(const SequenceStates& sequences) {
  FB_CHECK(!has_context() && sequences.sequences() == sizes_.samples, "{} sequences for {} samples",
           sequences.sequences(), sizes_.samples);
  sequences.put_to(state_);
  for (size_t i = 0; i < about_.size(); ++i) about_[i] = sequences.text(static_cast<int64_t>(i));
  position_ = about_.front().tokens;
  has_logits_ = false;
}

void Generator::read_pending() {
  std::vector<int32_t> tokens;
  for (const SequenceText& text : about_)
    if (text.pending >= 0) tokens.push_back(text.pending);
  if (tokens.size() == about_.size()) append(tokens);
}

void Generator::set_seed(uint64_t seed) {
  for (size_t i = 0; i < about_.size(); ++i) {
    about_[i].seed = seed;
    about_[i].stream = i;
  }
}

void Generator::generate(std::span<const int32_t> prompt, int64_t count,
                         const SamplingOptions& options, uint64_t seed,
                         const std::function<bool(int64_t sample, int32_t token)>& emit) {
  if (count <= 0) return;
  set_seed(seed);
  begin(prompt);
  go_on(count, options, emit);
}

void Generator::go_on(int64_t count, const SamplingOptions& options,
                      const std::function<bool(int64_t sample, int32_t token)>& emit) {
  read_pending();
  FB_CHECK(count <= 0 || can_go_on(), "nothing to continue");
  std::vector<bool> live(about_.size(), true);
  std::vector<int32_t> next(about_.size(), 0);
  for (int64_t made = 0; made < count; ++made) {
    if (made > 0) append(next);
    bool any = false;
    for (size_t i = 0; i < about_.size(); ++i) {
      SequenceText& text = about_[i];
      if (!live[i]) {  // a text that has ended is carried on with its last token
        text.pending = next[i];
        continue;
      }
      const auto sample = static_cast<int64_t>(i);
      PhiloxStream draws(text.seed, text.stream);
      draws.skip(static_cast<uint64_t>(text.made++));
      next[i] = text.pending = sample_token(logits(sample), options, draws, text.seen);
      live[i] = emit(sample, next[i]);
      any = any || live[i];
    }
    if (!any) return;
  }
}

}  // namespace fullbore
