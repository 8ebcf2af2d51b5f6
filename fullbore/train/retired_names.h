#pragma once
#include <string>
#include <string_view>

namespace fullbore {

/// A value of a key that has another name today.
struct RetiredWord {
  std::string key;  ///< by its name of today
  std::string retired;
  std::string now;
};

/// Names of earlier versions, and what they are called today: the only place where the old ones remain; those
/// of registered keys stand in ConfigKeys::retired_words. A person who
/// types one is told the new one; what a run or a checkpoint has stored is translated.

/// Today's name of a key of the configuration; empty: no key was ever called so.
std::string_view renamed_key(std::string_view key);
/// Today's word for a value of a key (by its name of today), or for an item of its list; empty: it had no other word.
std::string_view renamed_value(std::string_view key, std::string_view value);
/// A text of a run's identity (ckpt/run_record.h), which names settings as "branch=VALUE" or "split by VALUE", as it
/// reads today.
std::string renamed_identity(std::string text);
/// Today's name of a source in the locations of a stored graph ("train/streams.cpp"); empty: it never had another one.
std::string_view renamed_source(std::string_view source);
/// The text of a stored graph (ir/print.h), whose inputs' roles and loops' attributes have the names of today.
std::string renamed_graph(std::string_view text);

}  // namespace fullbore
