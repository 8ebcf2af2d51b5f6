#include "workloads/latentwire/prompt_batches.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/data/permutation.h"
#include "workloads/latentwire/teacher_cache.h"

namespace fullbore::latentwire {
namespace {

int64_t count_ids(const Receiver& receiver, const std::string& text) {
  return std::ssize(receiver.ids(text));
}

}  // namespace

PromptExtents prompt_extents(const PromptSource& source, const std::vector<Receiver>& receivers,
                             int64_t most_units, int64_t most_answer, bool with_text,
                             const TextEncoder* encoder) {
  PromptExtents extents;
  extents.units = std::min(most_units, source.most_in_source([&](const std::string& text) {
    return encoder == nullptr ? std::ssize(text) : std::ssize(encoder->ids(text, most_units));
  }));
  for (const Receiver& each : receivers) {
    const int64_t end = each.terminator_tokens();
    const int64_t answer =
        std::min(most_answer, end + source.most_in_answer([&](const std::string& text) {
          return count_ids(each, text);
        }));
    extents.answers.push_back(answer);
    if (!with_text) continue;
    const int64_t longest = source.most_in_source(
        [&](const std::string& text) { return std::ssize(each.prompt_ids(text)); });
    extents.prompts.push_back(longest + answer - 1);
    if (extents.prompts.back() > each.decoder.context)
      throw DataError(
          fmt::format("{}: a prompt and its answer take {} tokens; receiver {} reads {} "
                      "(loss.distillation_weight and loss.state_weight have it read the text)",
                      source.about(), extents.prompts.back(), each.name, each.decoder.context));
  }
  return extents;
}

std::vector<int32_t> cut_answer(const Receiver& receiver, const Prompt& prompt, int64_t most) {
  std::vector<int32_t> ids = receiver.answer_ids(prompt.answers.front(), prompt.id);
  if (std::ssize(ids) > most) ids.resize(static_cast<size_t>(most));
  return ids;
}

AnswerLength answer_length(const Receiver& receiver, std::span<const int32_t> ids) {
  AnswerLength length{std::ssize(ids), 0};
  for (size_t t = 0; t < ids.size(); ++t) {
    std::string bytes;
    if (ids[t] != receiver.terminator_id) receiver.tokenizer->append_bytes(ids[t], bytes);
    if (bytes.find_first_not_of(" \t\n\r\f\v") == std::string::npos) continue;
    length.first = static_cast<int64_t>(t);
    break;
  }
  return length;
}

std::vector<int32_t> prompt_ids(const Receiver& receiver, const std::string& source) {
  return receiver.prompt_ids(source);
}

PromptExtents larger(const PromptExtents& a, const PromptExtents& b) {
  const auto each = [](std::vector<int64_t> of, const std::vector<int64_t>& other) {
    of.resize(std::max(of.size(), other.size()));
    for (size_t i = 0; i < other.size(); ++i) of[i] = std::max(of[i], other[i]);
    return of;
  };
  return {std::max(a.units, b.units), each(a.answers, b.answers), each(a.prompts, b.prompts)};
}

std::vector<PromptExtents> answer_buckets(const PromptExtents& extents) {
  constexpr int64_t kBuckets = 4;
  std::vector<PromptExtents> buckets;
  for (int64_t part = 1; part <= kBuckets; ++part) {
    PromptExtents bucket = extents;
    for (size_t i = 0; i < bucket.answers.size(); ++i) {
      const int64_t all = extents.answers[i];
      bucket.answers[i] = (all * part + kBuckets - 1) / kBuckets;
      if (!bucket.prompts.empty()) bucket.prompts[i] -= all - bucket.answers[i];
    }
    if (buckets.empty() || bucket.answers != buckets.back().answers) buckets.push_back(bucket);
  }
  return buckets;
}

PromptBatches::PromptBatches(std::shared_ptr<const PromptSource> source,
                             std::shared_ptr<const std::vector<Receiver>> receivers,
                             Options options)
    : source_(std::move(source)),
      receivers_(std::move(receivers)),
      options_(std::move(options)),
      cache_(options_.cache_bytes) {
  if (options_.buckets.empty()) options_.buckets = {options_.extents};
  for (const PromptExtents& each : options_.buckets)
    shapes_.push_back(fields_of(*receivers_, options_.batch, each));
}

std::vector<BatchField> PromptBatches::fields_of(const std::vector<Receiver>& receivers,
                                                 int64_t batch, const PromptExtents& extents) {
  const auto i32 = [](Shape shape) { return TensorType{DType::i32, std::move(shape)}; };
  std::vector<BatchField> fields = {
      {"units", i32({batch, extents.units})}, {"lengths", i32({batch})},
      {"first_weight", {DType::f32, {}}},     {"keep", {DType::f32, {}}},
      {"text_step", {DType::f32, {}}},        {"latent_scale", {DType::f32, {}}}};
  for (size_t i = 0; i < receivers.size(); ++i) {
    const std::string& name = receivers[i].name;
    const int64_t length = extents.answers[i];
    fields.push_back({"answer_" + name, i32({batch, length})});
    fields.push_back({"factors_" + name, {DType::f32, {batch, 3, length}}});
    if (extents.prompts.empty()) continue;
    fields.push_back({"prompt_" + name, i32({batch, extents.prompts[i]})});
    fields.push_back({"prompt_lengths_" + name, i32({batch})});
  }
  if (extents.teacher.empty()) return fields;
  for (size_t i = 0; i < receivers.size(); ++i) {
    const auto [states, places] = extents.teacher[i];
    fields.push_back({"teacher_" + receivers[i].name,
                      {DType::f32, {batch, states, places, receivers[i].decoder.width}}});
  }
  fields.push_back({"teacher_found", {DType::f32, {}}});
  return fields;
}

int64_t PromptBatches::prompt_number(uint64_t example) const {
  const auto count = static_cast<uint64_t>(source_->size());
  const uint64_t place = example % count;
  return static_cast<int64_t>(
      options_.seed ? Permutation(count, *options_.seed, example / count)(place) : place);
}

// Prompts of a group of batches, one batch behind the other.
std::vector<int64_t> PromptBatches::group(uint64_t number) const {
  constexpr size_t kMostKept = 8;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = groups_.find(number); found != groups_.end()) return found->second;
  }
  const auto batches = static_cast<uint64_t>(options_.grouped);
  const auto rows = static_cast<uint64_t>(options_.batch);
  struct Member {
    size_t bytes;
    int64_t prompt;
  };
  std::vector<Member> members;
  for (uint64_t row = 0; row < batches * rows; ++row) {
    const int64_t prompt = prompt_number(number * batches * rows + row);
    members.push_back({source_->prompt(prompt).answers.front().size(), prompt});
  }
  std::ranges::stable_sort(members, {}, &Member::bytes);
  // A stream of its own beside those of the epochs.
  const Permutation order(batches, options_.seed.value_or(0), ~number);
  std::vector<int64_t> prompts;
  for (uint64_t batch = 0; batch < batches; ++batch)
    for (uint64_t row = 0; row < rows; ++row)
      prompts.push_back(members[order(batch) * rows + row].prompt);
  const std::scoped_lock lock(mutex_);
  if (groups_.size() >= kMostKept) groups_.clear();
  groups_.emplace(number, prompts);
  return prompts;
}

std::vector<PromptBatches::Numbered> PromptBatches::prompts_at(uint64_t position) const {
  const auto batch = static_cast<uint64_t>(options_.batch);
  const auto grouped = static_cast<uint64_t>(std::max<int64_t>(1, options_.grouped));
  std::vector<int64_t> members;
  if (grouped > 1) members = group(position / grouped);
  std::vector<Numbered> prompts;
  for (uint64_t row = 0; row < batch; ++row) {
    const int64_t index = grouped > 1 ? members[position % grouped * batch + row]
                                      : prompt_number(position * batch + row);
    prompts.push_back({index, source_->prompt(index)});
  }
  return prompts;
}

std::vector<int32_t> PromptBatches::answer_of(size_t receiver, const Numbered& prompt) const {
  const uint64_t key = static_cast<uint64_t>(prompt.index) * 2 * receivers_->size() + 2 * receiver;
  return cache_.get(key, [&] {
    return cut_answer((*receivers_)[receiver], prompt.prompt, options_.extents.answers[receiver]);
  });
}

std::vector<int32_t> PromptBatches::text_of(size_t receiver, const Numbered& prompt) const {
  const uint64_t key =
      static_cast<uint64_t>(prompt.index) * 2 * receivers_->size() + 2 * receiver + 1;
  return cache_.get(key,
                    [&] { return prompt_ids((*receivers_)[receiver], prompt.prompt.source()); });
}

// The first that holds the answers of every receiver.
size_t PromptBatches::bucket_of(const std::vector<Numbered>& prompts) const {
  size_t bucket = 0;
  for (const Numbered& prompt : prompts)
    for (size_t i = 0; i < receivers_->size(); ++i) {
      if (bucket + 1 == options_.buckets.size()) return bucket;
      const int64_t tokens = std::ssize(answer_of(i, prompt));
      while (options_.buckets[bucket].answers[i] < tokens) ++bucket;
    }
  return bucket;
}

size_t PromptBatches::shape_at(uint64_t position) const {
  constexpr size_t kMostRemembered = 4096;
  if (shapes_.size() == 1) return 0;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = met_.find(position); found != met_.end()) return found->second;
  }
  const size_t bucket = bucket_of(prompts_at(position));
  const std::scoped_lock lock(mutex_);
  if (met_.size() >= kMostRemembered) met_.clear();
  met_.emplace(position, bucket);
  return bucket;
}

void PromptBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const std::vector<Numbered> prompts = prompts_at(position);
  const PromptExtents& extents = options_.buckets[shape_at(position)];
  const auto places = static_cast<size_t>(extents.units);
  auto* const units = static_cast<int32_t*>(buffers[PromptFields::kUnits]);
  auto* const lengths = static_cast<int32_t*>(buffers[PromptFields::kLengths]);
  std::fill_n(units, places * prompts.size(), 0);
  for (size_t row = 0; row < prompts.size(); ++row) {
    const int64_t most = options_.encoder ? options_.most_bytes : extents.units;
    const std::vector<int32_t> read = prompt_units(
        options_.encoder.get(),
        encoder_text(prompts[row].prompt, options_.question_first, most).bytes, extents.units);
    std::ranges::copy(read, units + row * places);
    lengths[row] = static_cast<int32_t>(read.size());
  }
  const PromptStep step = options_.step ? options_.step(position) : PromptStep();
  *static_cast<float*>(buffers[PromptFields::kFirstWeight]) = static_cast<float>(step.first_weight);
  *static_cast<float*>(buffers[PromptFields::kKeep]) = static_cast<float>(step.keep);
  *static_cast<float*>(buffers[PromptFields::kText]) = step.text ? 1 : 0;
  *static_cast<float*>(buffers[PromptFields::kLatentScale]) = static_cast<float>(step.latent_scale);
  const bool with_text = !extents.prompts.empty();
  for (size_t i = 0; i < receivers_->size(); ++i)
    fill_receiver(i, prompts, extents, step.early_tokens,
                  buffers.subspan(PromptFields::of_receiver(i, with_text)));
  if (options_.extents.teacher.empty()) return;
  std::vector<int64_t> numbers;
  for (const Numbered& each : prompts) numbers.push_back(each.index);
  const auto teacher = buffers.subspan(PromptFields::of_teacher(0, receivers_->size(), with_text));
  int64_t found = 0;
  for (size_t i = 0; i < receivers_->size(); ++i)
    found += options_.teacher->copy(i, numbers, static_cast<float*>(teacher[i]));
  *static_cast<float*>(teacher[receivers_->size()]) = static_cast<float>(found);
}

void PromptBatches::fill_receiver(size_t number, const std::vector<Numbered>& prompts,
                                  const PromptExtents& extents, int64_t early,
                                  std::span<void* const> buffers) const {
  const Receiver& receiver = (*receivers_)[number];
  const int64_t length = extents.answers[number];
  const auto row_size = static_cast<size_t>(length);
  auto* const answers = static_cast<int32_t*>(buffers[PromptFields::kAnswer]);
  std::fill_n(answers, row_size * prompts.size(), -1);
  std::vector<AnswerLength> lengths;
  std::vector<std::vector<int32_t>> rows;
  for (size_t row = 0; row < prompts.size(); ++row) {
    rows.push_back(answer_of(number, prompts[row]));
    std::ranges::copy(rows.back(), answers + row * row_size);
    lengths.push_back(answer_length(receiver, rows.back()));
  }
  const AnswerFactors factors = answer_factors(lengths, length, early);
  auto* const to = static_cast<float*>(buffers[PromptFields::kFactors]);
  for (size_t row = 0; row < prompts.size(); ++row) {
    size_t kind = 0;
    for (const std::vector<float>* from : {&factors.all, &factors.first, &factors.early})
      std::copy_n(from->data() + row * row_size, row_size, to + (3 * row + kind++) * row_size);
  }
  if (extents.prompts.empty()) return;
  const auto places = static_cast<size_t>(extents.prompts[number]);
  auto* const texts = static_cast<int32_t*>(buffers[PromptFields::kPrompt]);
  auto* const text_lengths = static_cast<int32_t*>(buffers[PromptFields::kPromptLengths]);
  std::fill_n(texts, places * prompts.size(), 0);
  for (size_t row = 0; row < prompts.size(); ++row) {
    std::vector<int32_t> ids = text_of(number, prompts[row]);
    text_lengths[row] = static_cast<int32_t>(ids.size());
    ids.insert(ids.end(), rows[row].begin(), rows[row].end());
    ids.resize(std::min(ids.size(), places));
    FB_CHECK(static_cast<size_t>(text_lengths[row]) <= places, "a prompt of {} tokens, {} places",
             text_lengths[row], places);
    std::ranges::copy(ids, texts + row * places);
  }
}

}  // namespace fullbore::latentwire
