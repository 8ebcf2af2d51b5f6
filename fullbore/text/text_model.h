#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fullbore/app/workload.h"
#include "fullbore/nn/language_model_loss.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/train/evaluator.h"
#include "fullbore/train/generator.h"
#include "fullbore/train/rollout.h"

namespace fullbore {

class BatchMaker;
class Tokenizer;
struct TextData;
struct TrainedModel;

/// A loss that `eval` measures beside the model's own.
struct TextVariant {
  std::string name;  ///< "without attention"; of JSON with underscores
  LossFunction loss;
};

/// What a model adds to `eval` of texts.
struct TextEval {
  /// UsageError that names an option of its own, if one was given for that model; "": one that is not of texts.
  std::function<void(const std::string& model)> refuse;
  /// Changes what the model was trained with, or UsageError.
  std::function<void(Config&)> begin = {};
  /// Does something else in place of an evaluation; nothing: it is not asked to.
  std::function<std::optional<ExitCode>(const EvalRequest&, TrainedModel&, const TextData&,
                                        Console&)>
      instead = {};
  std::function<std::optional<TextVariant>(const Config&, int64_t tokens)> variant = {};
  std::vector<std::string> examples = {};
};

/// A model that another program has written, with its tokenizer.
struct ForeignModel {
  Config config;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::function<void(State&)> fill;  ///< every parameter
};

/// A layout of weights that other programs read.
struct ForeignLayout {
  std::string name;   ///< of export --format
  std::string about;  ///< for its --help: what is written, and who reads it how
  std::function<void(const TrainedModel&, const std::string& folder)> write;
  /// Weights of a folder that is neither run nor checkpoint of ours.
  std::function<InitialWeights(const Config&, const Tokenizer&)> read;
  /// A folder that is used as it is; nothing: it has no such layout. DataError: what is wrong in it.
  std::function<std::optional<ForeignModel>(const std::string& folder)> open = {};
};

/// i32 [B,T] -> what the head reads [B,T,C], and the head, on rows that know of nothing before them: for losses of one's
/// own.
using HiddenFunction = std::function<LanguageModelHead(Trace&, Tensor tokens)>;

/// Rows of texts that begin alike: first what a row's texts share, then what each of them goes on with, text after text.
struct BranchedTokens {
  Tensor tokens;     ///< i32 [B,T]
  Tensor branches;   ///< i32 [B,T]: 0 of what is shared, else which text a token is of
  Tensor positions;  ///< i32 [B,T]: its place in its text
};
/// The same for such rows: each text is as if it stood alone.
using BranchedHiddenFunction =
    std::function<LanguageModelHead(Trace&, const BranchedTokens& inputs)>;

/// A model of texts, as everything that handles texts knows it. `tokens`: how many distinct ones the data have.
struct TextModel {
  std::string name;  ///< value of model.name
  /// The loss on batches of data.batching (text_batches.h).
  std::function<LossFunction(const Config&, int64_t tokens)> loss;
  /// What generates.
  std::function<DecodeFunction(const Config&, int64_t tokens)> decode;
  /// The same for texts of different lengths at once, over a paged cache; empty: it has none.
  std::function<PagedDecodeFunction(const Config&, int64_t tokens)> paged_decode = {};
  std::function<HiddenFunction(const Config&, int64_t tokens)> hidden;
  /// Empty, or what is made is: it reads no such rows.
  std::function<BranchedHiddenFunction(const Config&, int64_t tokens)> branched_hidden = {};
  /// All that decides what its parameters mean.
  std::function<std::string(const Config&)> identity;
  /// Elements of its matrices, but for the token table.
  std::function<double(const Config&)> matrix_elements;
  bool is_recurrent =
      false;  ///< remembers a sequence in a state that does not grow, in place of a context

  // Its weights (text_weights.h).
  std::vector<std::string> weight_keys = {};  ///< settings that change what weights of a shape mean
  std::string token_table;                    ///< the parameter with a row for each token
  std::string position_table = {};            ///< with a row for each place; "": it has none
  /// The parameter that is an output head of its own; "": it has none.
  std::function<std::string(const Config&)> head = {};
  std::optional<ForeignLayout> layout = {};  ///< of folders: export's own choice
  std::vector<ForeignLayout> file_layouts =
      {};  ///< of single files, "*.gguf"; the first reads them
  /// Parameters that stay f32 in `export --int8`, besides those that --keep names.
  std::function<std::set<std::string>(const Config&)> keeps_f32 = {};

  // Further, where it has such things.
  std::function<int64_t(const Config&)> segments =
      {};  ///< of each sequence in a batch, of data.batching=sequences
  std::function<std::string(const std::string& name, double value)> figure =
      {};  ///< of a step, for the live line
  /// What evaluations begin segments with, for people.
  std::function<std::string(const Config&)> evaluated_state = {};
  std::function<TextEval(Command eval)> add_eval = {};
  /// What it is judged by beside the loss and the perplexity on texts (Workload::quality).
  std::function<QualityMetrics(const Config&)> quality = {};
};

/// What makes batches that are not stretches of a text: a value of data.batching.
struct TextTask {
  std::string name;
  /// What stands for a text: a tokenizer, and no tokens. UsageError for sizes that make no examples.
  std::function<TextData(const Config&)> data;
  std::function<std::vector<std::vector<BatchField>>(const Config&)> shapes;
  std::function<std::shared_ptr<const BatchSource>(const Config&, const TextData&)> training;
  /// `most_batches` of them; 0: as many as the task has use for.
  std::function<ValidationSet(const Config&, const TextData&, int64_t most_batches)> held_out;
  std::function<std::string(const Config&)> about;  ///< a line for people
  std::function<LossFunction(const Config&, int64_t tokens)> loss;
  /// A figure of a step, for the live line, in place of the perplexity.
  std::function<std::string(const std::string& name, double value)> figure;
  std::string measured_by;     ///< the command, in place of `eval`: "eval-mine recall"
  bool reads_path = false;     ///< data.path names a file of its own
  bool takes_buckets = false;  ///< data.buckets are lengths of its batches
  /// Makes the batches by the weights of the step, in place of `training`, which is empty then, as `held_out` is.
  std::function<std::shared_ptr<BatchMaker>(const Config&, const TextData&)> maker = {};
  /// OpenedWorkload::beside
  std::function<std::vector<Graph>(const Config&, int64_t tokens)> beside = {};
  std::string sample =
      {};  ///< what a row of its batches has, for rates: "completions"; "": rates are of tokens
  /// How many of them; empty: one.
  std::function<int64_t(const Config&)> samples_per_row = {};
  /// What a run is judged by, in place of what runs of texts are.
  std::function<QualityMetrics(const Config&)> quality = {};
};

/// A workload of such models, which it registers; what is not of texts may be added to what is returned.
Workload text_workload(const std::string& name, std::vector<TextModel> models);
/// text_workload() does, when its workload is registered.
void register_text_model(TextModel model);
/// For Workload::registers.
void register_text_task(TextTask task);

/// UsageError "<what> is of a <name> model, not of a language model".
const TextModel& text_model(const Config& config, const std::string& what = "the configuration");
bool is_text_model(const Config& config);
/// The task of data.batching; null if batches are of a text.
const TextTask* text_task(const Config& config);
const std::vector<TextModel>& text_models();
std::vector<std::string> text_model_names();

}  // namespace fullbore
