#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/runtime/program.h"
#include "fullbore/runtime/state.h"
#include "fullbore/train/config.h"
#include "workloads/latentwire/receiver.h"

namespace fullbore::latentwire {

/// Which states of the teacher, which is the receiver itself on the text, the losses read: of each prompt
/// [states, places, d], the state behind the last norm first, of which the head makes the logits.
struct TeacherForm {
  bool last = false;
  std::vector<int64_t> layers = {};
  int64_t places = 0;  ///< K at most, from the first token of the answer on
  int64_t states() const { return (last ? 1 : 0) + static_cast<int64_t>(layers.size()); }
};
/// As the losses of a configuration want them, of answers of so many tokens. No states: there is no teacher.
TeacherForm teacher_form(const Config& config, int64_t answer_tokens);

/// The receiver alone with its frozen weights, run on texts.
class TeacherPass {
 public:
  /// DataError: weights that cannot be read.
  TeacherPass(const Config& config, const Receiver& receiver, TeacherForm form);

  static constexpr size_t kRows = 16;  ///< at once
  /// Of a text that answers stand behind, with `prompts` of its first tokens: f32 [rows, states, places, d].
  struct Row {
    std::vector<int32_t> ids;
    int64_t prompt = 0;
  };
  std::vector<float> run(std::span<const Row> rows);

 private:
  Graph trace(int64_t width);
  struct Compiled;
  Compiled& compiled(int64_t width);

  Config config_;
  Receiver receiver_;
  TeacherForm form_;
  std::unique_ptr<State> state_;
  std::map<int64_t, std::shared_ptr<Compiled>> programs_;  ///< by tokens of a row
};

}  // namespace fullbore::latentwire
