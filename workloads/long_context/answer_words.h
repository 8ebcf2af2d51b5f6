#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::long_context {

/// Texts as scores compare them. ASCII only where case and punctuation are meant; what is beyond it
/// is part of words.

std::string lower_case(std::string_view text);
bool is_ascii_punctuation(char c);
std::string_view without_spaces_around(std::string_view text);
/// By white space.
std::vector<std::string> split_words(std::string_view text);
/// Lower case; all but letters, digits and what is beyond ASCII divides words.
std::vector<std::string> plain_words(std::string_view text);
std::vector<std::string> split_lines(std::string_view text);
/// One text per code point; a byte that is none stands for itself.
std::vector<std::string> split_characters(std::string_view text);

}  // namespace fullbore::long_context
