#include "workloads/chess/record_recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "fullbore/base/hash.h"
#include "fullbore/base/philox.h"
#include "fullbore/data/split_mix.h"
#include "workloads/chess/arbiter_reward.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/game.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

/// What a random number is for: streams of one seed never meet.
enum Purpose : uint64_t { kEndgame = 1, kGame = 2, kListing = 3 };

PhiloxStream draws_of(uint64_t seed, Purpose purpose, uint64_t index) {
  return PhiloxStream(mixed_key({seed, purpose}), index);
}

/// Positions are ranked so many at a time: enough for all engines to be busy.
constexpr size_t kChunk = 1000;
/// Chunks without a single new record behind which a recipe has no more.
constexpr int kMostBarren = 1000;

/// What will be a record when its position is ranked.
struct Candidate {
  KeptPosition position;
  uint64_t listing = 0;  ///< the number by which its moves are shuffled
};

/// What its prompt depends on.
std::string prompt_key(const Candidate& candidate, const RecordFormat& format) {
  const KeptPosition& position = candidate.position;
  if (!position.is_arbiter) return "P" + position.fen;
  return arbiter_record(position.fen, position.move, position.history, {}, format).prompt;
}

class RecordMaker {
 public:
  RecordMaker(const RecipeOptions& options, MoveRanker& ranker,
              const std::function<Status(ChessRecord&&)>& take)
      : options_(options),
        format_(options.format.value_or(recipe_format(options.recipe))),
        ranker_(ranker),
        take_(take) {}

  Status chunk() {
    const std::vector<Candidate> candidates = next_candidates();
    std::vector<std::string> fens;
    for (const Candidate& each : candidates)
      if (!each.position.is_arbiter) fens.push_back(each.position.fen);
    std::vector<EngineAnalysis> analyses = ranker_.rank(fens);
    auto analysis = analyses.begin();
    for (const Candidate& each : candidates) {
      Result<ChessRecord> record =
          each.position.is_arbiter ? arbiter(each.position) : policy(each, *analysis++);
      if (done()) return success();
      if (!record.ok()) {
        if (counts_.unanalysed++ == 0) counts_.first_problem = record.error();
        continue;
      }
      ++(each.position.is_arbiter ? counts_.arbiter : counts_.policy);
      if (Status taken = take_(std::move(record).value()); !taken.ok()) return taken;
    }
    if (made() == 0 && counts_.unanalysed > 0) return Failure{counts_.first_problem};
    return success();
  }
  int64_t made() const { return counts_.policy + counts_.arbiter; }
  bool done() const { return made() == options_.records; }
  RecipeCounts counts() { return std::move(counts_); }

 private:
  /// Those of the next numbers whose prompts are new. Always as many numbers, so that what is asked for changes nothing.
  std::vector<Candidate> next_candidates() {
    std::vector<Candidate> found;
    const auto add = [&](Candidate candidate) {
      if (seen_.insert(prompt_key(candidate, format_)).second)
        found.push_back(std::move(candidate));
      else
        ++counts_.repeated;
    };
    if (options_.recipe == RecordRecipe::endgames) {
      for (size_t i = 0; i < kChunk; ++i, ++next_)
        add({{endgame_fen(options_.seed, next_), "", {}, false, 0}, next_});
      return found;
    }
    constexpr uint64_t kPliesPerGame = 64;
    for (size_t i = 0; i < kChunk / 4; ++i, ++next_)
      for (KeptPosition& position : game_positions(options_.seed, next_, options_.arbiter_share)) {
        const uint64_t listing = next_ * kPliesPerGame + position.ply;
        add({std::move(position), listing});
      }
    return found;
  }

  Result<ChessRecord> policy(const Candidate& candidate, EngineAnalysis& analysis) const {
    if (!analysis.ok()) return Failure{analysis.error()};
    std::vector<RankedMove>& top = analysis.value();
    std::vector<size_t> order(top.size());
    std::iota(order.begin(), order.end(), size_t{0});
    PhiloxStream draws = draws_of(options_.seed, kListing, candidate.listing);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
    return policy_record(candidate.position.fen, std::move(top), order, format_);
  }

  Result<ChessRecord> arbiter(const KeptPosition& position) const {
    const Result<ArbiterAnswer> answer = arbiter_truth(position.fen, position.move);
    if (!answer.ok()) return Failure{answer.error()};
    return arbiter_record(position.fen, position.move, position.history, answer.value(), format_);
  }

  const RecipeOptions& options_;
  RecordFormat format_;
  MoveRanker& ranker_;
  const std::function<Status(ChessRecord&&)>& take_;
  std::unordered_set<std::string> seen_;
  uint64_t next_ = 0;
  RecipeCounts counts_;
};

/// A FEN's board field of pieces by square; 0: empty.
std::string board_field(const std::array<char, 64>& pieces) {
  std::string text;
  for (int rank = 7; rank >= 0; --rank) {
    for (int file = 0; file < 8; ++file) {
      const char piece = pieces[static_cast<size_t>(8 * rank + file)];
      text += piece == 0 ? '.' : piece;
    }
    if (rank > 0) text += '/';
  }
  return compact_fen(text);
}

}  // namespace

std::optional<RecordRecipe> parse_record_recipe(std::string_view name) {
  for (const RecordRecipe recipe : {RecordRecipe::endgames, RecordRecipe::games})
    if (name == record_recipe_name(recipe)) return recipe;
  return std::nullopt;
}

std::string_view record_recipe_name(RecordRecipe recipe) {
  return recipe == RecordRecipe::endgames ? "endgames" : "games";
}

RecordFormat recipe_format(RecordRecipe recipe) {
  RecordFormat format = short_format();
  format.expanded_board = recipe == RecordRecipe::endgames;
  return format;
}

std::string endgame_fen(uint64_t seed, uint64_t index) {
  PhiloxStream draws = draws_of(seed, kEndgame, index);
  for (;;) {
    std::array<char, 64> pieces{};
    // Weights 2, 2 and 1.
    constexpr std::array<int, 5> kCounts = {1, 1, 2, 2, 3};
    const int others = kCounts[draws.below(kCounts.size())];
    for (int i = 0; i < others + 2; ++i) {
      char piece = i == 0 ? 'K' : i == 1 ? 'k' : "QRBNPqrbnp"[draws.below(10)];
      const bool is_pawn = piece == 'P' || piece == 'p';
      size_t square = 0;
      do square = is_pawn ? 8 + draws.below(48) : draws.below(64);
      while (pieces[square] != 0);
      pieces[square] = piece;
    }
    const char side = draws.below(2) == 0 ? 'w' : 'b';
    std::string fen =
        fmt::format("{} {} - - 0 {}", board_field(pieces), side, 40 + draws.below(41));
    Position position;
    if (parse_fen(fen, position) == FenError::kNone &&
        game_result(position) == GameResult::kOngoing)
      return fen;
  }
}

std::vector<KeptPosition> game_positions(uint64_t seed, uint64_t game, double arbiter_share) {
  PhiloxStream draws = draws_of(seed, kGame, game);
  std::vector<KeptPosition> kept;
  std::vector<std::string> history;
  Position position = start_position();
  const uint64_t plies = 2 + draws.below(39);
  for (uint64_t ply = 0; ply < plies; ++ply) {
    if (game_result(position) != GameResult::kOngoing) break;
    const MoveList moves = legal_moves(position);
    const Move move = moves[static_cast<int>(draws.below(static_cast<uint64_t>(moves.size())))];
    const bool is_kept = draws.below(4) == 0, is_arbiter = draws.uniform() < arbiter_share;
    std::string text = uci_text(move);
    if (is_kept) kept.push_back({fen_text(position), text, history, is_arbiter, ply});
    history.push_back(std::move(text));
    make_move(position, move);
  }
  return kept;
}

Result<RecipeCounts> make_records(const RecipeOptions& options, MoveRanker& ranker,
                                  const std::function<Status(ChessRecord&&)>& take,
                                  const std::function<void(int64_t)>& progress) {
  if (options.records < 1 || !(options.arbiter_share >= 0 && options.arbiter_share <= 1))
    throw UsageError(fmt::format("{} records, share of A {}: at least 1, and from 0 to 1",
                                 options.records, options.arbiter_share));
  RecordMaker maker(options, ranker, take);
  for (int barren = 0; !maker.done();) {
    const int64_t before = maker.made();
    if (const Status made = maker.chunk(); !made.ok()) return Failure{made.error()};
    if (progress) progress(maker.made());
    barren = maker.made() > before ? 0 : barren + 1;
    if (barren == kMostBarren)
      return Failure{fmt::format("the recipe has no more than {} records", maker.made())};
  }
  return maker.counts();
}

bool is_held_out(std::string_view fen, double share) {
  size_t end = 0;
  for (int field = 0; field < 4 && end < fen.size(); ++field)
    end = std::min(fen.find(' ', end + (field > 0)), fen.size());
  const uint64_t hash = SplitMix64::mix(hash_text(fen.substr(0, end)));
  return static_cast<double>(hash >> 11) * 0x1p-53 < share;
}

}  // namespace fullbore::chess
