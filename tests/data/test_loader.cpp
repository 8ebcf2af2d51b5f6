#include "fullbore/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "fullbore/data/token_windows.h"
#include "tests/data/corpus.h"
#include "tests/support/refused_threads.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 3;
constexpr int64_t kContext = 8;

class Windows : public ::testing::Test {
 protected:
  /// A corpus of `count` random tokens below 50.
  std::shared_ptr<const TokenCorpus> corpus(int64_t count) {
    std::string text;
    PhiloxStream random(11);
    for (int64_t i = 0; i < count; ++i)
      text.push_back(static_cast<char>('0' + static_cast<int>(random.below(50))));
    return testing::corpus_of(folder_, text);
  }
  static int32_t token(const TokenCorpus& tokens, int64_t index) {
    int32_t value = 0;
    tokens.copy(index, 1, &value);
    return value;
  }

  testing::ScratchFolder folder_;
  const WindowOptions options_{kBatch, kContext};
};

using Loaders = Windows;

/// A batch by itself, both fields one after the other.
std::vector<int32_t> batch_of(const BatchSource& source, uint64_t position) {
  const auto elements = static_cast<size_t>(source.fields()[0].type.elements());
  std::vector<int32_t> values(2 * elements, -7);
  void* const buffers[] = {values.data(), values.data() + elements};
  source.fill(position, buffers);
  return values;
}

std::vector<int32_t> copy_of(std::span<const void* const> batch, const BatchSource& source) {
  std::vector<int32_t> values;
  for (size_t field = 0; field < batch.size(); ++field) {
    const auto* data = static_cast<const int32_t*>(batch[field]);
    values.insert(values.end(), data, data + source.fields()[field].type.elements());
  }
  return values;
}

TEST_F(Windows, TheSplitIsNanoGpts) {
  const TokenSplit split = split_tokens(1'115'394, 0.1, "t.txt");
  EXPECT_EQ(split.training.end, 1'003'854);
  EXPECT_EQ(split.validation.begin, 1'003'854);
  EXPECT_EQ(split.validation.size(), 111'540);
  EXPECT_EQ(split_tokens(10, 0, "t").validation.size(), 0);
  EXPECT_EQ(split_tokens(1, 0.5, "t").training.size(), 0);
}

TEST_F(Windows, TrainingWindowsAreConsecutiveTokensOfTheRange) {
  const auto tokens = corpus(100);
  const TokenRange range{"t", "training", 20, 60};
  const auto source = RandomWindows::create(tokens, range, options_, 5).take_or_throw();
  ASSERT_EQ(source->fields()[0].type.text(), "i32[3,8]");
  std::set<int64_t> starts;
  for (uint64_t position = 0; position < 300; ++position) {
    const std::vector<int32_t> values = batch_of(*source, position);
    for (int64_t row = 0; row < kBatch; ++row) {
      const int64_t start = source->offset(position, row);
      starts.insert(start);
      for (int64_t t = 0; t < kContext; ++t) {
        const auto at = static_cast<size_t>(row * kContext + t);
        ASSERT_EQ(values[at], token(*tokens, start + t));
        ASSERT_EQ(values[at + kBatch * kContext], token(*tokens, start + t + 1));
      }
    }
  }
  // 900 draws from 32 starts: each is met, the first and the last that fit included.
  EXPECT_EQ(starts.size(), 32U);
  EXPECT_EQ(*starts.begin(), 20);
  EXPECT_EQ(*starts.rbegin(), 60 - kContext - 1);
}

TEST_F(Windows, ABatchIsAFunctionOfSeedAndPosition) {
  const auto tokens = corpus(5000);
  const TokenRange range{"t", "training", 0, 5000};
  const auto a = RandomWindows::create(tokens, range, options_, 1).take_or_throw();
  const auto b = RandomWindows::create(tokens, range, options_, 2).take_or_throw();
  EXPECT_EQ(batch_of(*a, 17), batch_of(*a, 17));
  EXPECT_NE(batch_of(*a, 17), batch_of(*a, 18));
  EXPECT_NE(batch_of(*a, 17), batch_of(*b, 17));
  // Pinned: a run resumed with a later version must see the same data.
  EXPECT_EQ(a->offset(0, 0), static_cast<int64_t>((philox_bits(1, 0, 0) >> 32) * 4992 >> 32));
  EXPECT_EQ(a->offset(1'000'000, 2),
            static_cast<int64_t>((philox_bits(1, 1'000'000, 2) >> 32) * 4992 >> 32));
}

TEST_F(Windows, TheSmallestTextThatSufficesIsTaken) {
  const auto tokens = corpus(40);
  const auto with = [&](int64_t size) {
    return RandomWindows::create(tokens, {"a.txt", "training", 0, size}, options_, 1);
  };
  const auto source = with(kContext + 1).take_or_throw();
  EXPECT_EQ(source->offset(3, 1), 0);
  EXPECT_EQ(with(kContext).error(),
            "a.txt: too short: its training part has 8 of 40 tokens, and a context of 8 needs "
            "at least 9. Take a longer text or a smaller model.context");
  EXPECT_FALSE(with(0).ok());
}

TEST_F(Windows, ValidationPredictsEveryTokenExactlyOnce) {
  const auto tokens = corpus(200);
  for (int64_t size = 2; size < 120; ++size) {
    const TokenRange range{"t", "validation", 50, 50 + size};
    const auto source = SequentialWindows::create(tokens, range, options_).take_or_throw();
    std::vector<int32_t> targets;
    int64_t predictions = 0;
    for (uint64_t position = 0; position < source->batches(); ++position) {
      const std::vector<int32_t> values = batch_of(*source, position);
      int64_t valid = 0;
      for (size_t i = 0; i < kBatch * kContext; ++i) {
        const int32_t target = values[i + kBatch * kContext];
        if (target < 0) {
          ASSERT_EQ(target, -1);
          ASSERT_EQ(values[i], 0);
          continue;
        }
        ASSERT_EQ(values[i], token(*tokens, range.begin + static_cast<int64_t>(targets.size())));
        targets.push_back(target);
        ++valid;
      }
      EXPECT_GT(valid, 0);
      predictions += valid;
    }
    ASSERT_EQ(predictions, size - 1);
    for (int64_t i = 0; i + 1 < size; ++i)
      ASSERT_EQ(targets[static_cast<size_t>(i)], token(*tokens, range.begin + i + 1));
    EXPECT_EQ(batch_of(*source, source->batches()), batch_of(*source, 0));
  }
}

TEST_F(Windows, AValidationSplitWithNothingToPredictIsRefused) {
  const auto tokens = corpus(40);
  EXPECT_THAT(SequentialWindows::create(tokens, {"a.txt", "validation", 39, 40}, options_).error(),
              HasSubstr("a.txt: too short: its validation part has 1 of 40 tokens"));
}

TEST_F(Loaders, OrderAndBytesDependOnNeitherWorkersNorPrefetch) {
  const auto tokens = corpus(500);
  const std::shared_ptr<const BatchSource> source =
      RandomWindows::create(tokens, {"t", "training", 0, 500}, options_, 9).take_or_throw();
  for (const int workers : {0, 1, 2, 3, 4, 6, 8, 16}) {
    for (const int prefetch : {1, 2, 7}) {
      Loader loader(source, {workers, prefetch});
      for (uint64_t position = 0; position < 200; ++position) {
        ASSERT_EQ(loader.position(), position);
        const auto batch = loader.next();
        for (const void* buffer : batch) ASSERT_EQ(reinterpret_cast<uintptr_t>(buffer) % 64, 0U);
        ASSERT_EQ(copy_of(batch, *source), batch_of(*source, position))
            << workers << " workers, prefetch " << prefetch << ", position " << position;
      }
    }
  }
}

/// Counts its fills, and can make them slow: what the loader may not touch shows.
class CountingSource : public BatchSource {
 public:
  explicit CountingSource(int pause_microseconds = 0) : pause_(pause_microseconds) {}
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    ++fills_;
    auto* values = static_cast<int64_t*>(buffers[0]);
    for (int i = 0; i < 16; ++i) {
      values[i] = static_cast<int64_t>(position);
      if (pause_ > 0 && i % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_));
    }
  }
  int fills() const { return fills_; }

 private:
  const int pause_;
  mutable std::atomic<int> fills_{0};
  std::vector<BatchField> fields_ = {{"position", {DType::i64, Shape{16}}}};
};

bool is_batch(std::span<const void* const> batch, uint64_t position) {
  const auto* values = static_cast<const int64_t*>(batch[0]);
  return std::all_of(values, values + 16,
                     [&](int64_t v) { return v == static_cast<int64_t>(position); });
}

TEST(LoaderRing, ABatchInUseIsNotTouched) {
  const auto source = std::make_shared<CountingSource>(5);
  Loader loader(source, {4, 1});
  for (uint64_t position = 0; position < 100; ++position) {
    const auto batch = loader.next();
    std::this_thread::sleep_for(std::chrono::microseconds(position % 3 * 50));
    ASSERT_TRUE(is_batch(batch, position));
  }
}

TEST(LoaderRing, PreparesNoMoreThanItsRingHolds) {
  const auto source = std::make_shared<CountingSource>();
  {
    Loader loader(source, {3, 4});
    loader.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_LE(source->fills(), 1 + 4);
  }
  EXPECT_EQ(source.use_count(), 1) << "a worker outlived its loader";
}

TEST(LoaderRing, SeeksAnywhereAtAnyTime) {
  const auto source = std::make_shared<CountingSource>(2);
  Loader loader(source, {3, 3});
  PhiloxStream random(4);
  const uint64_t far = uint64_t{1} << 60;
  for (const uint64_t base : {uint64_t{0}, far, uint64_t{1000}, uint64_t{3}, uint64_t{3}, far}) {
    loader.seek(base);
    EXPECT_EQ(loader.position(), base);
    const uint64_t count = random.below(10);
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_EQ(loader.position(), base + i);
      ASSERT_TRUE(is_batch(loader.next(), base + i));
    }
  }
}

TEST(LoaderRing, AResumedLoaderContinuesTheSameSequence) {
  const auto source = std::make_shared<CountingSource>();
  Loader first(source, {2, 4});
  for (int i = 0; i < 37; ++i) first.next();
  Loader second(source, {1, 2});
  second.seek(first.position());
  for (uint64_t position = 37; position < 80; ++position) {
    ASSERT_TRUE(is_batch(first.next(), position));
    ASSERT_TRUE(is_batch(second.next(), position));
  }
}

/// Cannot make batch 7.
class BrokenSource : public CountingSource {
 public:
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    if (position == 7) throw DataError("batch 7 is broken");
    CountingSource::fill(position, buffers);
  }
};

TEST(LoaderRing, WhatASourceThrowsReachesWhoAsksForThatBatch) {
  for (const int workers : {0, 1, 4}) {
    Loader loader(std::make_shared<BrokenSource>(), {workers, 5});
    for (uint64_t position = 0; position < 7; ++position)
      ASSERT_TRUE(is_batch(loader.next(), position));
    for (int i = 0; i < 2; ++i) {
      EXPECT_THROW(loader.next(), DataError);
      EXPECT_EQ(loader.position(), 7U);
    }
    loader.seek(8);
    ASSERT_TRUE(is_batch(loader.next(), 8));
  }
}

TEST(LoaderRing, StopsWhileItsWorkersWork) {
  for (int i = 0; i < 50; ++i) {
    const auto source = std::make_shared<CountingSource>(i % 5);
    Loader loader(source, {1 + i % 4, 1 + i % 3});
    if (i % 2 == 0) loader.next();
  }
}

TEST(LoaderRing, WaitingIsMeasured) {
  Loader slow(std::make_shared<CountingSource>(500), {1, 1});
  EXPECT_EQ(slow.wait_seconds(), 0);
  for (int i = 0; i < 5; ++i) slow.next();
  EXPECT_GT(slow.wait_seconds(), 0);
  Loader direct(std::make_shared<CountingSource>(500), {0, 1});
  direct.next();
  EXPECT_GE(direct.wait_seconds(), 0.002) << "four sleeps of half a millisecond at the least";
}

TEST_F(Loaders, ARefusedThreadIsAnError) {
  const std::shared_ptr<const BatchSource> source =
      RandomWindows::create(corpus(500), {"t", "training", 0, 500}, options_, 9).take_or_throw();
  const testing::RefusedThreads refused(2);
  EXPECT_THROW(Loader(source, {.workers = 4}), DataError);
  EXPECT_EQ(refused.refused(), 1);
}

// A mapped file would end the process with SIGBUS.
TEST_F(Loaders, AShardThatIsCutShortIsNamed) {
  const auto tokens = corpus(50000);
  const std::shared_ptr<const BatchSource> source =
      RandomWindows::create(tokens, {"t", "training", 0, 50000}, options_, 9).take_or_throw();
  const std::string path = tokens->shards().front().path();
  for (const int workers : {0, 2}) {
    const std::string whole = read_file(path).take_or_throw();
    Loader loader(source, {.workers = workers, .prefetch = 1});
    loader.next();
    std::filesystem::resize_file(path, 4096);
    std::string error;
    try {
      for (int i = 0; i < 100; ++i) loader.next();
    } catch (const DataError& thrown) {
      error = thrown.what();
    }
    EXPECT_THAT(error, HasSubstr(path + " ends at byte "));
    EXPECT_THAT(error, HasSubstr("changed while it was in use"));
    std::ofstream(path, std::ios::binary | std::ios::in) << whole;  // the same file again
  }
}

TEST_F(Loaders, TokensThatBecomeOthersAreNoTokens) {
  const auto tokens = corpus(500);
  const std::string path = tokens->shards().front().path();
  const std::string bytes(500, '\xff');
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(64) << bytes;
  int32_t value = 0;
  EXPECT_THROW(tokens->copy(7, 1, &value), DataError);
}

}  // namespace
}  // namespace fullbore
