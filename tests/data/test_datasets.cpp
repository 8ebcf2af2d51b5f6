#include "fullbore/data/datasets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/data/loader.h"
#include "fullbore/data/permutation.h"
#include "tests/data/corpus.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int32_t> ids(const Array& array) {
  const auto tokens = array.tokens();
  return {tokens.begin(), tokens.end()};
}

/// Example i is the one token base + i.
DatasetPtr numbers(uint64_t size, int32_t base = 0) {
  return generate_examples({"tokens"}, size, [base](uint64_t index) {
    const int32_t value = base + static_cast<int32_t>(index);
    return Example{Array::of({&value, 1})};
  });
}
int32_t number(const DatasetPtr& dataset, uint64_t index) {
  return dataset->get(index).at(0).tokens()[0];
}

/// Documents of the given lengths: tokens 100 * document + position.
DatasetPtr documents(std::vector<int64_t> lengths) {
  const uint64_t size = lengths.size();
  return generate_examples({"tokens"}, size, [lengths](uint64_t index) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < lengths[index]; ++i)
      tokens.push_back(static_cast<int32_t>(100 * static_cast<int64_t>(index) + i));
    return Example{Array::of(tokens)};
  });
}

template <class Function>
std::string usage_error(const Function& function) {
  try {
    function();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(Permutation, IsOneForEverySizeAndKey) {
  for (uint64_t n = 1; n < 300; ++n) {
    for (uint64_t key = 0; key < 3; ++key) {
      const Permutation permutation(n, key);
      std::set<uint64_t> images;
      for (uint64_t i = 0; i < n; ++i) images.insert(permutation(i));
      ASSERT_EQ(images.size(), n);
      ASSERT_LT(*images.rbegin(), n);
    }
  }
  const Permutation large(uint64_t{1} << 62, 5);
  EXPECT_NE(large(0), large(1));
  // Pinned: a run resumed with a later version must see the same order.
  EXPECT_THAT((std::vector{Permutation(1000, 7)(0), Permutation(1000, 7)(1),
                           Permutation(1000, 7, 1)(0), Permutation(1000, 8)(0)}),
              ElementsAre(759, 476, 3, 362));
}

TEST(Permutation, EveryPlaceIsLikely) {
  // 12 items under 24,000 keys: each goes to each place 2000 times, +-5 standard deviations of 43.
  uint64_t counts[12][12] = {};
  for (uint64_t key = 0; key < 24'000; ++key)
    for (uint64_t i = 0; i < 12; ++i) ++counts[i][Permutation(12, key)(i)];
  for (const auto& row : counts)
    for (const uint64_t count : row) {
      EXPECT_GT(count, 2000U - 215);
      EXPECT_LT(count, 2000U + 215);
    }
}

TEST(Datasets, MapChangesEachExample) {
  const DatasetPtr doubled =
      map_examples(numbers(5), {"twice", "index"}, [](Example e, uint64_t i) {
        e[0].tokens()[0] *= 2;
        const auto index = static_cast<int32_t>(i);
        e.push_back(Array::of({&index, 1}));
        return e;
      });
  EXPECT_EQ(doubled->size(), 5U);
  EXPECT_THAT(doubled->names(), ElementsAre("twice", "index"));
  EXPECT_THAT(ids(doubled->get(3)[0]), ElementsAre(6));
  EXPECT_THAT(ids(doubled->get(3)[1]), ElementsAre(3));
}

TEST(Datasets, ShuffleMeetsEveryExampleOnceInEveryEpoch) {
  const DatasetPtr shuffled = shuffle_examples(numbers(37), 3);
  EXPECT_TRUE(shuffled->is_endless());
  std::vector<std::vector<int32_t>> epochs;
  for (uint64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<int32_t> order;
    for (uint64_t i = 0; i < 37; ++i) order.push_back(number(shuffled, epoch * 37 + i));
    EXPECT_EQ(std::set(order.begin(), order.end()).size(), 37U);
    for (const auto& earlier : epochs) EXPECT_NE(order, earlier);
    epochs.push_back(order);
  }
  EXPECT_NE(number(shuffle_examples(numbers(1000), 4), 0),
            number(shuffle_examples(numbers(1000), 5), 0));
  // However far, at once: nothing is counted up to there.
  EXPECT_LT(number(shuffled, uint64_t{1} << 60), 37);
  EXPECT_EQ(shuffle_examples(numbers(37), 3, 2)->size(), 74U);
  const DatasetPtr repeated = repeat_examples(numbers(3));
  EXPECT_THAT((std::vector{number(repeated, 0), number(repeated, 2), number(repeated, 3),
                           number(repeated, 3'000'000'001)}),
              ElementsAre(0, 2, 0, 1));
  EXPECT_THAT(usage_error([&] { shuffle_examples(repeated, 1); }),
              HasSubstr("shuffle: the source is endless"));
  EXPECT_THAT(usage_error([] { repeat_examples(numbers(0)); }), HasSubstr("repeat: the source is"));
}

TEST(Datasets, MixKeepsProportionsAndLeavesNothingOut) {
  const DatasetPtr mixed = mix_examples({{numbers(Dataset::kEndless), 3},
                                         {numbers(Dataset::kEndless, 1'000'000), 1},
                                         {numbers(Dataset::kEndless, 2'000'000), 1e-9}},
                                        9);
  std::map<int32_t, std::set<int32_t>> met;
  for (uint64_t i = 0; i < 2 * 4096; ++i) {
    const int32_t value = number(mixed, i);
    EXPECT_TRUE(met[value / 1'000'000].insert(value % 1'000'000).second) << "met twice";
    if (i == 4095) {
      EXPECT_EQ(met[0].size(), 3071U);
      EXPECT_EQ(met[1].size(), 1024U);
      EXPECT_EQ(met[2].size(), 1U);
    }
  }
  for (const auto& [source, values] : met)
    EXPECT_EQ(*values.rbegin() + 1, static_cast<int32_t>(values.size())) << "something left out";
  EXPECT_THAT(usage_error([] {
                mix_examples({{numbers(5), 1}}, 0);
              }),
              HasSubstr("mix: source 0 ends after 5 examples; shuffle or repeat it"));
  EXPECT_THAT(usage_error([] {
                mix_examples({{numbers(Dataset::kEndless), 0}}, 0);
              }),
              HasSubstr("the weight 0 is not above 0"));
  EXPECT_THAT(usage_error([] { mix_examples({}, 0); }), HasSubstr("0 sources"));
  const DatasetPtr other =
      map_examples(numbers(Dataset::kEndless), {"other"}, [](Example e, uint64_t) { return e; });
  EXPECT_THAT(usage_error([&] {
                mix_examples({{numbers(Dataset::kEndless)}, {other}}, 0);
              }),
              HasSubstr("source 1 has the tensors other, source 0 has tokens"));
}

TEST(Datasets, PackedRowsRespectDocuments) {
  const DatasetPtr rows = pack_documents(documents({3, 5, 0, 1, 2}), {.length = 4});
  ASSERT_EQ(rows->size(), 3U);
  const Example first = rows->get(0);
  EXPECT_THAT(ids(first[0]), ElementsAre(0, 1, 2, 100));
  EXPECT_THAT(ids(first[1]), ElementsAre(1, 2, -1, 101));
  EXPECT_THAT(ids(first[2]), ElementsAre(1, 1, 1, 2));
  EXPECT_THAT(ids(first[3]), ElementsAre(0, 1, 2, 0));
  const Example last = rows->get(2);
  EXPECT_THAT(ids(last[0]), ElementsAre(300, 400, 401, 0));
  const DatasetPtr fitted =
      pack_documents(documents({3, 5, 0, 1, 2}), {.length = 4, .cut_documents = false});
  ASSERT_EQ(fitted->size(), 3U);
  EXPECT_THAT(ids(fitted->get(0)[0]), ElementsAre(100, 101, 102, 103));
  EXPECT_THAT(ids(fitted->get(0)[1]), ElementsAre(101, 102, 103, 104));
  EXPECT_THAT(ids(fitted->get(1)[0]), ElementsAre(0, 1, 2, 104));
  EXPECT_THAT(ids(fitted->get(1)[1]), ElementsAre(1, 2, -1, -1));
  EXPECT_THAT(ids(fitted->get(2)[2]), ElementsAre(1, 1, 2, 0));
  const DatasetPtr even =
      pack_documents(documents({3, 5}), {.length = 4, .cut_documents = false, .multiple_of = 4});
  ASSERT_EQ(even->size(), 4U);
  EXPECT_THAT(ids(even->get(3)[0]), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(ids(even->get(3)[1]), ElementsAre(-1, -1, -1, -1));
  EXPECT_THAT(usage_error([] { pack_documents(numbers(Dataset::kEndless), {.length = 4}); }),
              HasSubstr("pack: the source is endless"));
}

TEST(Datasets, PackingPredictsEveryTokenButTheFirstOfADocumentOnce) {
  PhiloxStream random(12);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<int64_t> lengths;
    for (uint64_t n = 1 + random.below(30); n > 0; --n)
      lengths.push_back(static_cast<int64_t>(random.below(40)));
    for (const bool cut : {true, false}) {
      const DatasetPtr rows = pack_documents(
          documents(lengths),
          {.length = static_cast<int64_t>(1 + random.below(25)), .cut_documents = cut});
      std::set<int32_t> inputs;
      std::set<int32_t> targets;
      for (uint64_t r = 0; r < rows->size(); ++r) {
        const Example row = rows->get(r);
        for (size_t i = 0; i < row[0].tokens().size(); ++i) {
          const int32_t segment = row[2].tokens()[i];
          const int32_t target = row[1].tokens()[i];
          if (segment == 0) {
            ASSERT_EQ(target, -1);
            continue;
          }
          ASSERT_TRUE(inputs.insert(row[0].tokens()[i]).second);
          if (target < 0) continue;
          ASSERT_EQ(target, row[0].tokens()[i] + 1);
          ASSERT_TRUE(targets.insert(target).second);
        }
      }
      std::set<int32_t> all;
      std::set<int32_t> but_first;
      for (size_t d = 0; d < lengths.size(); ++d)
        for (int64_t i = 0; i < lengths[d]; ++i) {
          const auto token = static_cast<int32_t>(100 * static_cast<int64_t>(d) + i);
          all.insert(token);
          if (i > 0) but_first.insert(token);
        }
      ASSERT_EQ(inputs, all);
      ASSERT_EQ(targets, but_first);
    }
  }
}

TEST(Datasets, BucketsHoldLikeLengthsWithinTheBudget) {
  std::vector<int64_t> lengths;
  PhiloxStream random(2);
  for (int i = 0; i < 200; ++i) lengths.push_back(static_cast<int64_t>(1 + random.below(64)));
  BucketOptions options{.lengths = {8, 16, 64}, .token_budget = 128, .seed = 3, .padding = {-9}};
  const DatasetPtr batches = bucket_examples(documents(lengths), options);
  EXPECT_TRUE(batches->is_endless());
  options.epochs = 1;
  const uint64_t per_epoch = bucket_examples(documents(lengths), options)->size();
  std::vector<std::vector<int64_t>> orders;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int32_t> met;
    std::vector<int64_t> order;
    for (uint64_t i = 0; i < per_epoch; ++i) {
      const uint64_t index = epoch * per_epoch + i;
      const Example batch = batches->get(index);
      const Shape shape = batch[0].type.shape;
      EXPECT_EQ(batches->types(index), (std::vector{batch[0].type, batch[1].type}));
      EXPECT_LE(shape.elements(), 128);
      order.push_back(shape[1]);
      for (int64_t row = 0; row < shape[0]; ++row) {
        const int32_t length = batch[1].tokens()[static_cast<size_t>(row)];
        if (length == 0) continue;
        EXPECT_LE(length, shape[1]);
        EXPECT_GT(length, shape[1] == 8 ? 0 : shape[1] == 16 ? 8 : 16);
        const auto at = static_cast<size_t>(row * shape[1]);
        const int32_t document = batch[0].tokens()[at] / 100;
        EXPECT_EQ(length, lengths[static_cast<size_t>(document)]);
        EXPECT_TRUE(met.insert(document).second);
        if (length < shape[1]) {
          EXPECT_EQ(batch[0].tokens()[at + static_cast<size_t>(length)], -9);
        }
      }
    }
    EXPECT_EQ(met.size(), lengths.size());
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_THAT(
      usage_error([] { bucket_examples(documents({9}), {.lengths = {8}, .token_budget = 8}); }),
      HasSubstr("bucket: example 0 has 9 tokens, the longest bucket 8"));
  EXPECT_THAT(
      usage_error([] { bucket_examples(documents({1}), {.lengths = {8}, .token_budget = 7}); }),
      HasSubstr("bucket: lengths 8 with a budget of 7"));
}

TEST(Datasets, CutDocumentsPredictEveryTokenButTheFirstOnce) {
  const DatasetPtr pieces = cut_documents(documents({3, 0, 1, 5, 8, 2}), 4);
  std::vector<std::vector<int32_t>> inputs;
  std::vector<int32_t> targets;
  for (uint64_t i = 0; i < pieces->size(); ++i) {
    const Example piece = pieces->get(i);
    EXPECT_EQ(pieces->types(i), (std::vector{piece[0].type, piece[1].type}));
    inputs.push_back(ids(piece[0]));
    for (const int32_t target : ids(piece[1])) targets.push_back(target);
  }
  EXPECT_THAT(inputs, ElementsAre(ElementsAre(0, 1), ElementsAre(300, 301, 302, 303),
                                  ElementsAre(400, 401, 402, 403), ElementsAre(404, 405, 406),
                                  ElementsAre(500)));
  EXPECT_THAT(targets,
              ElementsAre(1, 2, 301, 302, 303, 304, 401, 402, 403, 404, 405, 406, 407, 501));
  EXPECT_EQ(cut_documents(documents({0, 1}), 4)->size(), 0U);
  EXPECT_THAT(usage_error([] { cut_documents(numbers(Dataset::kEndless), 4); }),
              HasSubstr("cut: the source is endless"));
  EXPECT_THAT(usage_error([] { cut_documents(documents({3}), 0); }), HasSubstr("cut: pieces of 0"));
}

TEST(Datasets, ExamplesOfSeveralTensorsAreBucketedTogether) {
  const DatasetPtr pieces = cut_documents(documents({3, 6}), 4);
  const DatasetPtr batches = bucket_examples(
      pieces, {.lengths = {2, 4}, .token_budget = 4, .epochs = 1, .padding = {0, -1}});
  EXPECT_THAT(batches->names(), ElementsAre("inputs", "targets", "lengths"));
  std::map<int32_t, std::vector<int32_t>> targets;  // by the first input
  for (uint64_t i = 0; i < batches->size(); ++i) {
    const Example batch = batches->get(i);
    targets[batch[0].tokens()[0]] = ids(batch[1]);
  }
  EXPECT_EQ(batches->shapes().size(), 2U);
  ASSERT_EQ(targets.size(), 2U) << "[0 1] and [104] share a batch of 2 x 2";
  EXPECT_THAT(targets[100], ElementsAre(101, 102, 103, 104));
  targets.erase(100);
  const std::vector<int32_t> two = targets.begin()->second;
  EXPECT_THAT(two, ::testing::AnyOf(ElementsAre(1, 2, 105, -1), ElementsAre(105, -1, 1, 2)));
  const DatasetPtr uneven = map_examples(documents({3}), {"a", "b"}, [](Example e, uint64_t) {
    e.emplace_back(TensorType{DType::i32, {2}});
    return e;
  });
  EXPECT_THAT(usage_error([&] { bucket_examples(uneven, {.lengths = {4}, .token_budget = 4}); }),
              HasSubstr("bucket: a tensor of example 0 is i32[2]; the length of the others"));
}

TEST(Datasets, BatchesStackExamples) {
  const DatasetPtr batches = batch_examples(documents({2, 2, 2, 2, 2, 3}), 2);
  EXPECT_EQ(batches->size(), 3U);
  EXPECT_EQ(batches->types(0)[0].text(), "i32[2,2]");
  EXPECT_THAT(ids(batches->get(1)[0]), ElementsAre(200, 201, 300, 301));
  EXPECT_THROW(batches->get(2), DataError);
  EXPECT_THAT(usage_error([] { batch_examples(numbers(2), 3); }), HasSubstr("a batch needs 3"));
}

TEST(Datasets, DocumentsOfACorpusAreCutAtItsSpan) {
  const testing::ScratchFolder folder;
  const std::string path = folder.put("t.jsonl",
                                      "{\"text\": \"abc\"}\n{\"text\": \"de\"}\n"
                                      "{\"text\": \"fgh\"}\n");
  const TextSources sources = find_text(path).take_or_throw();
  const auto corpus = testing::corpus_at(
      folder, path, CharacterTokenizer(collect_characters(sources).take_or_throw()));
  const DatasetPtr middle = corpus_documents(corpus, {1, 7});
  ASSERT_EQ(middle->size(), 3U);
  EXPECT_THAT(ids(middle->get(0)[0]), ElementsAre(1, 2));
  EXPECT_THAT(ids(middle->get(1)[0]), ElementsAre(3, 4));
  EXPECT_THAT(ids(middle->get(2)[0]), ElementsAre(5, 6));
  EXPECT_EQ(middle->types(2)[0].text(), "i32[2]");
  EXPECT_THAT(ids(middle->part(2, 0, 1, 1)), ElementsAre(6));
  EXPECT_EQ(corpus_documents(corpus, {3, 3})->size(), 0U);
}

/// All of them at once, as a training job would stack them.
std::shared_ptr<const BatchSource> stacked() {
  std::vector<int64_t> lengths;
  PhiloxStream random(1);
  for (int i = 0; i < 60; ++i) lengths.push_back(static_cast<int64_t>(1 + random.below(30)));
  const DatasetPtr packed = pack_documents(documents(lengths), {.length = 16});
  const DatasetPtr noisy =
      map_examples(shuffle_examples(packed, 5), packed->names(), [](Example e, uint64_t index) {
        e[0].tokens()[0] = static_cast<int32_t>(philox_bits(8, index, 0) % 1000);
        return e;
      });
  return std::make_shared<DatasetBatches>(
      batch_examples(mix_examples({{noisy, 2}, {repeat_examples(packed), 1}}, 6), 4));
}

TEST(Datasets, OneToSixteenWorkersMakeTheSameBatches) {
  const auto source = stacked();
  std::vector<std::vector<int32_t>> expected;
  for (const int workers : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}) {
    Loader loader(source, {workers, 1 + workers % 5});
    const uint64_t begin = workers % 2 == 0 ? 0 : 20;  // half of them resumed
    loader.seek(begin);
    for (uint64_t position = begin; position < 60; ++position) {
      const auto batch = loader.next();
      std::vector<int32_t> values;
      for (size_t field = 0; field < batch.size(); ++field) {
        const auto* data = static_cast<const int32_t*>(batch[field]);
        values.insert(values.end(), data, data + 4 * 16);
      }
      if (workers == 0)
        expected.push_back(values);
      else
        ASSERT_EQ(values, expected[position]) << workers << " workers, position " << position;
    }
  }
}

TEST(Datasets, BatchesOfManyShapesGoThroughOneLoader) {
  const DatasetPtr batches = bucket_examples(
      documents({1, 7, 3, 9, 2, 16, 5}), {.lengths = {4, 16, 17}, .token_budget = 32, .seed = 1});
  const auto source = std::make_shared<DatasetBatches>(batches);
  ASSERT_EQ(source->shapes().size(), 2U) << "a bucket without examples has no batches";
  EXPECT_EQ(source->fields()[0].type.elements(), 32);
  Loader loader(source, {2, 3});
  std::set<std::string> shapes;
  for (uint64_t position = 0; position < 20; ++position) {
    const std::vector<BatchField> fields = source->shapes()[source->shape_at(position)];
    shapes.insert(fields[0].type.text());
    const auto batch = loader.next();
    // "lengths" is at its largest where the tokens are not.
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto* data = static_cast<const int32_t*>(batch[i]);
      EXPECT_EQ(std::vector<int32_t>(data, data + fields[i].type.elements()),
                ids(batches->get(position)[i]));
    }
  }
  EXPECT_THAT(shapes, ElementsAre("i32[2,16]", "i32[8,4]"));
}

TEST(Datasets, ABatchOfAnUnexpectedShapeIsNotWrittenBeyondItsBuffer) {
  const DatasetBatches batches(documents({3, 3, 4}));
  std::vector<int32_t> memory(3);
  void* const buffers[] = {memory.data()};
  batches.fill(1, buffers);
  EXPECT_THAT(memory, ElementsAre(100, 101, 102));
  try {
    batches.fill(2, buffers);
    FAIL() << "it was written";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("batch 2: 'tokens' is i32[4]"));
  }
}

}  // namespace
}  // namespace fullbore
