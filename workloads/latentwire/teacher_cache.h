#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "workloads/latentwire/prompt_source.h"
#include "workloads/latentwire/receiver.h"
#include "workloads/latentwire/teacher_file.h"
#include "workloads/latentwire/teacher_pass.h"

namespace fullbore::latentwire {

/// Does the teacher's part of a step come from files (loss.teacher_cache)?
bool caches_teacher(const Config& config);

/// What the teacher makes of each prompt of a source. It is frozen and reads the right answers, so that this never changes:
/// it is computed once, kept in files, and mapped from then on.
///
/// Files are named by a hash of all that the numbers follow from: texts, tokenizer, weights, anchor, limits, places,
/// layers, precision. One that is cut short, damaged or another's under that name counts as absent and is written anew,
/// atomically. The first call of copy() writes what is missing; a run that is stopped meanwhile finds the files that
/// were complete.
class TeacherCache {
 public:
  /// answers: T of each receiver.
  TeacherCache(const Config& config, std::shared_ptr<const PromptSource> source,
               std::shared_ptr<const std::vector<Receiver>> receivers,
               std::span<const int64_t> answers);
  ~TeacherCache();

  /// f32 [states, places, d] of a receiver, as a field of a batch has it.
  Shape shape(size_t receiver) const;
  /// Of prompts, one after another. Returns how many of them were there before this process. DataError: the files cannot
  /// be written, or the receiver not be read. Any number of threads.
  int64_t copy(size_t receiver, std::span<const int64_t> prompts, float* to) const;
  /// For people.
  std::string about() const;

 private:
  struct Files;
  void make(size_t receiver, Files& files) const;
  TeacherPass::Row row(size_t receiver, int64_t prompt) const;

  Config config_;
  std::shared_ptr<const PromptSource> source_;
  std::shared_ptr<const std::vector<Receiver>> receivers_;
  std::vector<int64_t> answers_;
  std::string folder_;
  bool narrow_;  ///< bf16
  std::vector<std::unique_ptr<Files>> files_;
};

}  // namespace fullbore::latentwire
