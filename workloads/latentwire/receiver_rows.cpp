#include "workloads/latentwire/receiver_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/answer_tokens.h"
#include "workloads/latentwire/latent_keys.h"

namespace fullbore::latentwire {
namespace {

// Stands for a prompt where only what surrounds it is wanted; no family's turns have such a character.
constexpr const char* kPrompt = "\x01";

std::vector<ChatPiece> conversation(const Receiver& receiver, const std::string& source) {
  const std::vector<ChatMessage> messages = {{"system", receiver.system}, {"user", source}};
  // The assistant's header ends it: where that is the anchor, it stands there once.
  std::vector<ChatPiece> pieces = ChatTemplate(*receiver.turns).render(messages, true);
  if (!receiver.anchor_is_header)
    pieces.insert(pieces.end(), receiver.anchor_pieces.begin(), receiver.anchor_pieces.end());
  return pieces;
}

// What stands before and behind a prompt of the user's turn.
std::pair<std::vector<ChatPiece>, std::vector<ChatPiece>> around(const Receiver& receiver) {
  const std::vector<ChatPiece> pieces = conversation(receiver, kPrompt);
  size_t at = pieces.size() - 1;
  while (pieces[at].text.find(kPrompt) == std::string::npos) --at;
  const size_t place = pieces[at].text.find(kPrompt);
  std::vector<ChatPiece> before(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(at)),
      behind(pieces.begin() + static_cast<std::ptrdiff_t>(at) + 1, pieces.end());
  if (place > 0) before.push_back({pieces[at].text.substr(0, place)});
  if (place + 1 < pieces[at].text.size())
    behind.insert(behind.begin(), ChatPiece{pieces[at].text.substr(place + 1)});
  return {std::move(before), std::move(behind)};
}

RowLayout::Begin begin_of(const Config& config) {
  const std::string& begin = latent_keys(config).receivers.begin;
  if (begin == "front") return RowLayout::Begin::front;
  if (begin == "before_anchor" || (begin == "auto" && !has_anchor(config)))
    return RowLayout::Begin::before_anchor;
  return RowLayout::Begin::none;
}

}  // namespace

bool has_anchor(const Config& config) {
  const LatentKeys::Receivers& keys = latent_keys(config).receivers;
  return keys.anchor_mode == "chat" || (keys.anchor_mode == "text" && !keys.anchor.empty());
}

void set_rows(Receiver& receiver, const Config& config) {
  const LatentKeys::Receivers& keys = latent_keys(config).receivers;
  const Tokenizer& tokens = *receiver.tokenizer;
  receiver.anchor_is_header = keys.anchor_mode == "chat";
  if (receiver.anchor_is_header || keys.scaffold == "chat") {
    receiver.turns = ChatTemplate::of(tokens).family();
    if (*receiver.turns == ChatFamily::kNone)
      throw UsageError(fmt::format(
          "receiver {}: its tokenizer has no turns of a conversation (Llama 3, ChatML, Qwen2 and "
          "SmolLM2 have); set receivers.anchor_mode=text and receivers.scaffold=plain",
          receiver.name));
    receiver.system = keys.system;
  }
  if (receiver.anchor_is_header)
    receiver.anchor_pieces = ChatTemplate::of(tokens).assistant_header();
  if (keys.anchor_mode == "text" && !keys.anchor.empty()) receiver.anchor_pieces = {{keys.anchor}};
  receiver.anchor = text_of(receiver.anchor_pieces);
  receiver.anchor_ids = tokens_of(tokens, receiver.anchor_pieces).take_or_throw();
  const RowLayout::Begin begin = begin_of(config);
  if (begin != RowLayout::Begin::none && receiver.begin < 0)
    throw UsageError(fmt::format(
        "receiver {}: its tokenizer has no token that begins a text; set receivers.begin=none",
        receiver.name));
  receiver.layout = {begin, receiver.begin, receiver.anchor_ids};
}

std::vector<int32_t> Receiver::prompt_ids(const std::string& source) const {
  if (turns) return tokens_of(*tokenizer, conversation(*this, source)).take_or_throw();
  std::vector<int32_t> all = ids(source + anchor);
  if (begin >= 0) all.insert(all.begin(), begin);
  return all;
}

std::vector<int32_t> Receiver::prompt_of(std::span<const int32_t> source) const {
  std::vector<int32_t> all;
  if (turns)
    all = tokens_of(*tokenizer, around(*this).first).take_or_throw();
  else if (begin >= 0)
    all.push_back(begin);
  all.insert(all.end(), source.begin(), source.end());
  const std::vector<int32_t> behind =
      turns ? tokens_of(*tokenizer, around(*this).second).take_or_throw() : anchor_ids;
  all.insert(all.end(), behind.begin(), behind.end());
  return all;
}

std::vector<int32_t> Receiver::answer_ids(const std::string& answer, const std::string& row) const {
  // A header ends with the line; behind a text the answer is a word of its own.
  const std::string text = (anchor_is_header ? "" : " ") + answer + terminator;
  Result<std::vector<int32_t>> found =
      answer_tokens(*tokenizer, anchor_pieces, text, terminator_id);
  if (!found.ok()) throw DataError(fmt::format("{}: receiver {}: {}", row, name, found.error()));
  return std::move(found).value();
}

std::string row_recipe(const Config& config, const std::vector<Receiver>& receivers) {
  const LatentKeys& keys = latent_keys(config);
  std::string recipe = fmt::format(
      "anchor {} '{}', scaffold {}, system '{}', begin {}, question first {}, {} bytes, {} answer "
      "tokens",
      keys.receivers.anchor_mode, keys.receivers.anchor, keys.receivers.scaffold,
      keys.receivers.system, keys.receivers.begin, keys.wire.question_first, keys.wire.max_bytes,
      keys.receivers.max_answer_tokens);
  if (keys.wire.encoder != "bytes")
    recipe += fmt::format(", {} encoder tokens", keys.wire.max_tokens);
  for (const Receiver& each : receivers) {
    const std::vector<int32_t> prompt = each.prompt_of({});
    recipe += fmt::format("; {}: {}, anchor [{}], prompts {}, end {}", each.name,
                          each.turns ? chat_family_name(*each.turns) : "plain",
                          fmt::join(each.anchor_ids, " "),
                          hash_hex(hash_bytes(prompt.data(), prompt.size() * sizeof(int32_t))),
                          each.terminator_id >= 0 ? each.terminator_id : each.terminator_tokens());
  }
  return recipe;
}

void check_rows(const std::string& recorded, const Config& config,
                const std::vector<Receiver>& receivers, const std::string& path) {
  const std::string here = row_recipe(config, receivers);
  if (recorded != here)
    throw DataError(fmt::format(
        "{} was trained on rows of the recipe \"{}\"; here they would be built as \"{}\"", path,
        recorded, here));
}

}  // namespace fullbore::latentwire
