#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/train/config.h"

namespace fullbore {

/// Keys of all models of texts, of the sections that they are grouped by here.
struct TextKeys {
  struct Data {
    std::string field = "text";
    std::string tokenizer = "character";
    std::string split = "fraction";
    std::string batching = "windows";
    std::vector<int64_t> buckets = {};
    int64_t tokens_per_batch = 0;
    std::vector<std::string> context_curriculum = {};
    bool operator==(const Data&) const = default;
  } data;
  struct Model {
    int64_t layers = 4;
    int64_t heads = 4;
    int64_t width = 128;
    int64_t context = 64;
    int64_t vocabulary = 0;
    bool operator==(const Model&) const = default;
  } model;
  struct Train {
    double z_loss = 0;
    int64_t sample_characters = 500;
    bool operator==(const Train&) const = default;
  } train;
  struct Engine {
    std::string fused_head = "auto";
    bool operator==(const Engine&) const = default;
  } engine;
  bool operator==(const TextKeys&) const = default;
};

inline const TextKeys& text_keys(const Config& config) { return config.get<TextKeys>(); }
inline TextKeys& text_keys(Config& config) { return config.get<TextKeys>(); }

}  // namespace fullbore
