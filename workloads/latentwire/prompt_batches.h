#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "workloads/latentwire/prefix_losses.h"
#include "workloads/latentwire/prompt_source.h"
#include "workloads/latentwire/receiver.h"
#include "workloads/latentwire/text_encoder.h"
#include "workloads/latentwire/token_cache.h"

namespace fullbore::latentwire {

class TeacherCache;

/// Extents of a batch that prompts decide.
struct PromptExtents {
  int64_t units = 0;             ///< N, bytes or tokens that the encoder reads
  std::vector<int64_t> answers;  ///< T of each receiver, the terminator included
  std::vector<int64_t> prompts =
      {};  ///< S of each receiver: BOS, source, anchor and T - 1; empty: no text is read
  struct Teacher {
    int64_t states = 0, places = 0;
  };
  std::vector<Teacher> teacher = {};  ///< of each receiver; empty: none comes from files
};
/// The largest that prompts of the source need, within `most_units` of the encoder and `most_answer` tokens.
PromptExtents prompt_extents(const PromptSource& source, const std::vector<Receiver>& receivers,
                             int64_t most_units, int64_t most_answer, bool with_text,
                             const TextEncoder* encoder = nullptr);

/// What both need.
PromptExtents larger(const PromptExtents& a, const PromptExtents& b);
/// Buckets for batches whose longest answers are short: a quarter, a half, three quarters and all of T, of each receiver.
/// Ascending; the last is `extents`.
std::vector<PromptExtents> answer_buckets(const PromptExtents& extents);

/// What a step is told besides its prompts.
struct PromptStep {
  double first_weight = 0;
  double keep = 1;
  int64_t early_tokens = 4;
  bool text = false;        ///< is it one of TextSteps?
  double latent_scale = 1;  ///< of the latents' losses
};

/// Where a batch's fields are.
struct PromptFields {
  static constexpr size_t kUnits = 0, kLengths = 1, kFirstWeight = 2, kKeep = 3, kText = 4,
                          kLatentScale = 5, kReceivers = 6;
  /// Fields of a receiver: answer, factors, and with text prompt and prompt_lengths.
  static constexpr size_t kAnswer = 0, kFactors = 1, kPrompt = 2, kPromptLengths = 3;
  static size_t of_receiver(size_t receiver, bool with_text) {
    return kReceivers + receiver * (with_text ? 4 : 2);
  }
  /// Behind all of them, with a teacher from files: its states for each receiver, and teacher_found.
  static size_t of_teacher(size_t receiver, size_t receivers, bool with_text) {
    return of_receiver(receivers, with_text) + receiver;
  }
};

/// Prompts as a step reads them:
///
///   units i32 [B,N] (prompt_units()), lengths i32 [B], first_weight, keep, text_step (0 or 1), latent_scale f32 [],
///   of each receiver: answer_NAME i32 [B,T], -1 behind the answer; factors_NAME f32 [B,3,T] (AnswerFactors: all, first,
///   early); with text: prompt_NAME i32 [B,S], BOS, source, anchor, directly followed by the answer; prompt_lengths_NAME
///   i32 [B], without the answer;
///   with a teacher from files: teacher_NAME f32 [B,states,K,d] (TeacherForm) of each receiver, and teacher_found f32 [],
///   how many of all of them no longer had to be computed
///
/// T is that of the first of the buckets that holds the batch's answers, and S is shorter by as much. What is left out
/// has factors of 0: no loss changes.
class PromptBatches : public BatchSource {
 public:
  struct Options {
    int64_t batch = 1;
    PromptExtents extents = {};
    bool question_first = true;
    std::shared_ptr<const TextEncoder> encoder = {};  ///< none: bytes are read
    int64_t most_bytes = 65536;                       ///< of a text, before it has tokens
    std::optional<uint64_t> seed = {};  ///< of the order of each epoch; none: as they come
    std::function<PromptStep(uint64_t position)> step = {};
    std::vector<PromptExtents> buckets = {};  ///< ascending, `extents` the last; empty: that alone
    size_t cache_bytes = 0;                   ///< of tokens that are kept (TokenCache)
    std::shared_ptr<const TeacherCache> teacher = {};  ///< with extents.teacher
    /// Do batches have answers of like length? Of so many batches' prompts in their order those with the shortest answers
    /// are one batch, and so on; these batches then come in an order of their own. 0 or 1: no.
    int64_t grouped = 0;
  };
  PromptBatches(std::shared_ptr<const PromptSource> source,
                std::shared_ptr<const std::vector<Receiver>> receivers, Options options);

  static std::vector<BatchField> fields_of(const std::vector<Receiver>& receivers, int64_t batch,
                                           const PromptExtents& extents);
  const std::vector<BatchField>& fields() const override { return shapes_.back(); }
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  size_t shape_at(uint64_t position) const override;
  TokenCache::Figures cache_figures() const { return cache_.figures(); }
  void fill(uint64_t position, std::span<void* const> buffers) const override;

 private:
  /// A prompt of a batch, by its number in the source.
  struct Numbered {
    int64_t index;
    Prompt prompt;
  };
  std::vector<Numbered> prompts_at(uint64_t position) const;
  int64_t prompt_number(uint64_t example) const;
  std::vector<int64_t> group(uint64_t number) const;
  std::vector<int32_t> answer_of(size_t receiver, const Numbered& prompt) const;
  std::vector<int32_t> text_of(size_t receiver, const Numbered& prompt) const;
  size_t bucket_of(const std::vector<Numbered>& prompts) const;
  void fill_receiver(size_t number, const std::vector<Numbered>& prompts,
                     const PromptExtents& extents, int64_t early,
                     std::span<void* const> buffers) const;

  std::shared_ptr<const PromptSource> source_;
  std::shared_ptr<const std::vector<Receiver>> receivers_;
  Options options_;
  std::vector<std::vector<BatchField>> shapes_;
  mutable TokenCache cache_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<uint64_t, size_t> met_;  ///< shapes of batches near the last
  mutable std::unordered_map<uint64_t, std::vector<int64_t>> groups_;  ///< near the last
};

/// Tokens of an answer, cut at `most`, and where its first content is.
std::vector<int32_t> cut_answer(const Receiver& receiver, const Prompt& prompt, int64_t most);
AnswerLength answer_length(const Receiver& receiver, std::span<const int32_t> ids);
/// Receiver::prompt_ids().
std::vector<int32_t> prompt_ids(const Receiver& receiver, const std::string& source);

}  // namespace fullbore::latentwire
