#pragma once
#include <cstdint>
#include <string>

#include "fullbore/train/config.h"

namespace fullbore::chess {

/// Keys of data.batching chess and chess_grpo, of the sections that they are grouped by here.
struct ChessKeys {
  struct Chess {
    std::string recipe = "endgames";
    int64_t records = 60000;
    std::string truth = "search";
    std::string engine = "";
    double engine_seconds = 10;
    double arbiter_share = 1.0 / 3;
    bool prompt_loss = false;
    bool operator==(const Chess&) const = default;
  } chess;
  struct Rollout {
    int64_t prompts = 16;
    int64_t samples = 8;
    double temperature = 1;
    int64_t top_k = 0;
    double top_p = 1;
    int64_t policy_tokens = 80;
    int64_t arbiter_tokens = 150;
    int64_t slots = 0;
    int64_t tokens_per_launch = 1;
    bool operator==(const Rollout&) const = default;
  } rollout;
  struct Reward {
    std::string scheme = "weighted";
    std::string fen_scaling = "exponential";
    std::string eval_scaling = "linear";
    double malformed = -0.3;
    double illegal_reward = -1;
    std::string truth = "record";
    std::string control = "none";
    bool operator==(const Reward&) const = default;
  } reward;
  struct Grpo {
    std::string algorithm = "grpo";
    std::string advantage = "auto";
    std::string aggregation = "auto";
    std::string ratio = "auto";
    std::string groups = "auto";
    std::string overlong = "auto";
    double clip_low = 0.2;
    double clip_high = 0;
    double entropy = 0;
    double kl = 0.01;
    double kl_target = 0.04;
    std::string kl_controller = "none";
    int64_t kl_warmup = 0;
    int64_t inner_epochs = 1;
    bool recompute_old = false;
    bool share_prompts = true;
    bool operator==(const Grpo&) const = default;
  } grpo;
  bool operator==(const ChessKeys&) const = default;
};

inline const ChessKeys& chess_keys(const Config& config) { return config.get<ChessKeys>(); }
inline ChessKeys& chess_keys(Config& config) { return config.get<ChessKeys>(); }

inline constexpr const char* kChessBatching = "chess";
inline constexpr const char* kGrpoBatching = "chess_grpo";

}  // namespace fullbore::chess
