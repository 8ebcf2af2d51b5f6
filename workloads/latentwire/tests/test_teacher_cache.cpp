// Files of what the teacher says: what is taken, and what is written anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "fullbore/base/files.h"
#include "fullbore/train/config.h"
#include "tests/support/faulty_files.h"
#include "tests/support/scratch_folder.h"
#include "workloads/latentwire/attribute_corpus.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/teacher_cache.h"

namespace fullbore::latentwire {
namespace {

namespace fs = std::filesystem;

class TeacherFiles : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "x.teacher"; }
  Status write(const TeacherFileForm& form) const {
    return TeacherFile::write(
        path(), form, 2, [](int64_t first, int64_t rows, std::span<std::byte> to) {
          for (size_t i = 0; i < to.size(); ++i)
            to[i] = static_cast<std::byte>(first * 3 + static_cast<int64_t>(i));
          EXPECT_EQ(std::ssize(to), 3 * rows);
        });
  }
  std::string error(const TeacherFileForm& form) const {
    const auto opened = TeacherFile::open(path(), form);
    return opened.ok() ? "" : opened.error();
  }

  testing::ScratchFolder folder_;
  TeacherFileForm form_{"key", 10, 5, 3};
};

TEST_F(TeacherFiles, GiveBackTheirRows) {
  ASSERT_TRUE(write(form_).ok());
  const TeacherFile file = TeacherFile::open(path(), form_).take_or_throw();
  for (int64_t row = 0; row < 5; ++row)
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(static_cast<int>(file.row(row)[i]), (10 + row) * 3 + static_cast<int>(i));
}

TEST_F(TeacherFiles, OfAnotherFormAreNotTaken) {
  ASSERT_TRUE(write(form_).ok());
  for (const TeacherFileForm& other :
       {TeacherFileForm{"kez", 10, 5, 3}, {"key", 11, 5, 3}, {"key", 10, 3, 5}})
    EXPECT_NE(error(other).find("its header differs"), std::string::npos) << error(other);
  EXPECT_NE(error({"key", 10, 6, 3}).find("has 279 bytes; 282 were expected"), std::string::npos)
      << error({"key", 10, 6, 3});
}

// Cut short anywhere, or with any byte changed.
TEST_F(TeacherFiles, DamagedAreNotTaken) {
  ASSERT_TRUE(write(form_).ok());
  const std::string whole = read_file(path()).take_or_throw();
  for (size_t at = 0; at < whole.size(); ++at) {
    folder_.put("x.teacher", whole.substr(0, at));
    EXPECT_NE(error(form_), "") << at;
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    folder_.put("x.teacher", changed);
    EXPECT_NE(error(form_), "") << at;
  }
  folder_.put("x.teacher", whole);
  EXPECT_EQ(error(form_), "");
  fs::rename(path(), folder_ / "other");
  fs::create_symlink(folder_ / "other", path());
  EXPECT_NE(error(form_).find("is a link"), std::string::npos);
}

// The corpus has so few rows here that each is in a file.
TEST_F(TeacherFiles, AreWrittenOnceAndAnewWhereTheyAreDamaged) {
  const auto config = [&](const char* more) {
    return parse_config(
        std::string("{model: {name: latentwire}, data: {cache_dir: '") + folder_.path() +
            "'}, loss: {teacher_cache: f32, distillation_weight: " + "1}" + more + "}",
        "x");
  };
  constexpr const char* kBytes = R"({"receivers": [{"name": "bytes", "kind": "bytes"}]})";
  std::vector<int64_t> all(6);
  std::iota(all.begin(), all.end(), 0);
  std::vector<float> states;
  const auto found = [&](const char* more = "", int64_t answer = 3) {
    const Config each = config(more);
    const auto receivers =
        std::make_shared<const std::vector<Receiver>>(recorded_receivers(kBytes, each));
    const TeacherCache cache(each, attribute_prompts(kAttributeTrainingKey, 0, 6), receivers,
                             std::vector<int64_t>{answer});
    states.resize(all.size() * static_cast<size_t>(cache.shape(0).elements()));
    return cache.copy(0, all, states.data());
  };
  EXPECT_EQ(found(), 0);
  const std::vector<float> first = states;
  EXPECT_EQ(found(), 6);
  EXPECT_EQ(states, first);
  const auto files = [&] {
    std::vector<fs::path> paths;
    for (const auto& each : fs::directory_iterator(folder_.path())) paths.push_back(each.path());
    return paths;
  };
  ASSERT_EQ(files().size(), 1U);
  fs::resize_file(files().front(), 300);
  EXPECT_EQ(found(), 0);
  EXPECT_EQ(states, first);
  EXPECT_EQ(found(), 6);
  // Other weights, other rows, other places: other files, and the first is left alone.
  EXPECT_EQ(found(", run: {seed: 2}"), 0);
  EXPECT_NE(states, first);
  EXPECT_EQ(found(", receivers: {anchor: 'A:'}"), 0);
  EXPECT_EQ(found("", 2), 0);
  EXPECT_EQ(files().size(), 4U);
  EXPECT_EQ(found(), 6);
  EXPECT_EQ(states, first);
}

// Whatever fails on the way, the old file stays, and none is left beside it.
TEST_F(TeacherFiles, AreThereWholeOrNotAtAll) {
  ASSERT_TRUE(write(form_).ok());
  const std::string whole = read_file(path()).take_or_throw();
  TeacherFileForm other = form_;
  other.key = "another";
  const auto zeros = [](int64_t, int64_t, std::span<std::byte> to) {
    std::ranges::fill(to, std::byte{0});
  };
  testing::FaultyFiles sound;
  ASSERT_TRUE(TeacherFile::write(folder_ / "y", other, 2, zeros, sound).ok());
  fs::remove(folder_ / "y");
  int failures = 0;
  for (int n = 0; n < sound.operations(); ++n) {
    testing::FaultyFiles files;
    files.fail_at(n, ENOSPC);
    const bool written = TeacherFile::write(path(), other, 2, zeros, files).ok();
    const bool renamed = read_file(path()).take_or_throw() != whole;
    EXPECT_EQ(renamed ? error(other) : error(form_), "") << n;
    EXPECT_TRUE(renamed || !written) << n;
    EXPECT_EQ(folder_.count(), 1) << n;
    failures += written ? 0 : 1;
    folder_.put("x.teacher", whole);
  }
  EXPECT_GT(failures, 4);
}

}  // namespace
}  // namespace fullbore::latentwire
