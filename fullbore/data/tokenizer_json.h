#pragma once
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "fullbore/base/result.h"

/// What readers of Hugging Face's tokenizer.json share: it is taken apart without a tree, and what would change the
/// tokens and is not known is refused by name.
namespace fullbore::hugging_face_json {

/// The members of an object, each as it stands.
using Members = std::map<std::string, std::string_view, std::less<>>;

Result<Members> members_of(std::string_view json);
/// "null" where there is none.
std::string_view value_of(const Members& members, std::string_view key);
/// Whether the member is one of the values that change nothing; Failure names it and what stands.
Status expect(const Members& members, const std::string& path, std::string_view key,
              std::initializer_list<std::string_view> accepted);

}  // namespace fullbore::hugging_face_json
