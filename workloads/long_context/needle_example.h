#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::long_context {

/// What is hidden and what is asked for. A needle is a line "NAME: VALUE.", of four and five capital
/// letters; the question is the begin of such a line at the text's end, "NAME: ".
enum class NeedleTask : uint8_t {
  single,        ///< one needle at a depth
  multi_needle,  ///< m needles, evenly spaced; asked for one after another
  multi_key,     ///< one needle at a depth among m - 1 of other names
  multi_value,   ///< m needles of one name; all values are asked for at once
  multi_query,   ///< m needles; `asked` of them at once: "NAME, NAME: "
  variable_tracking,  ///< m chains of `hops` needles whose values are names; "VALUE? " asks for a chain's
};
std::string_view needle_task_name(NeedleTask task);  ///< "single", "multi-needle", ...
std::optional<NeedleTask> parse_needle_task(std::string_view name);
std::vector<std::string> needle_task_names();
/// Is the needle where the caller says, or are several evenly spaced?
bool has_depth(NeedleTask task);

struct NeedleOptions {
  NeedleTask task = NeedleTask::single;
  int64_t characters = 1024;  ///< from the first one to the end of the first question
  double depth = 0.5;         ///< of the needle, 0 to 1, where has_depth()
  int64_t needles = 1;        ///< m; of variable_tracking, the chains
  int64_t asked = 0;          ///< of multi_needle and multi_query; 0: all
  int64_t hops = 4;           ///< of variable_tracking: names that lead to the first of a chain
  bool hide_answers = false;  ///< the control: what is asked for is not there
  /// What the needles lie in, from a place that is drawn; empty: words drawn of sixteen frequent ones.
  std::string_view haystack = {};
};

struct NeedleAnswer {
  std::string text;
  double depth = 0;  ///< where it stands in the haystack, 0 to 1
};

struct NeedleQuestion {
  std::string text;
  std::vector<NeedleAnswer> answers;  ///< several: in any order
  int64_t room = 0;                   ///< characters that an answer takes at most
};

/// A text and what is asked after it, question by question, the answers left standing.
struct NeedleExample {
  std::string text;  ///< up to the first question
  std::vector<NeedleQuestion> questions;
};

/// The example of `key`, by SplitMix64: names and values of the needles in turn, then the filler, cut
/// to what needles and question leave of `characters`; a needle stands at floor(depth * filler), moved
/// left to just after a space, or to 0. UsageError where the needles do not fit, or the options do not
/// go together.
NeedleExample make_needle_example(uint64_t key, const NeedleOptions& options);

/// Which answers of the question `text`, what a model wrote behind it, holds: of one answer, whether it
/// begins with it; of several, which stand in it as words.
std::vector<bool> found_answers(const NeedleQuestion& question, std::string_view text);

/// The characters that texts without a haystack of one's own are made of.
std::string needle_alphabet();
/// All 65 characters of tiny-shakespeare, ascending: what a character model of it can read.
std::string shakespeare_alphabet();

}  // namespace fullbore::long_context
