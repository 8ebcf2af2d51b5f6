// Data of one's own: a table of numbers in a text file. The last rows are held out; the others come in another order in
// each epoch.
//
// usage: table train data.file=FILE [key=value ...], table eval RUN, table --help
#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fullbore/app/own_model.h"
#include "fullbore/data/permutation.h"
#include "fullbore/nn/modules.h"

using namespace fullbore;

namespace {

constexpr int64_t kColumns = 4;
constexpr int64_t kClasses = 3;

// columns f32 [B,4], classes i32 [B] -> mean cross-entropy, and the share that is right
Loss loss(Trace& trace, const BatchTensors& batch) {
  const Tensor columns = batch["columns"];
  const Tensor hidden =
      tanh(nn::linear(trace, "first", columns, 32, nn::linear_of_pytorch(kColumns)));
  const Tensor logits = nn::linear(trace, "last", hidden, kClasses, nn::linear_of_pytorch(32));
  const Tensor hits = equal(cast(argmax(logits, 1), i32), batch["classes"]);
  Loss made = reduce_mean(cross_entropy(logits, batch["classes"]), {0});
  made.metrics = {{"accuracy", reduce_mean(cast(hits, f32), {0})}};
  return made;
}

// [table]
struct Keys {
  std::string file = "measurements.csv";
  bool operator==(const Keys&) const = default;
};

struct Table {
  std::vector<float> columns;    // [rows,4]
  std::vector<int32_t> classes;  // [rows]
  uint64_t learned = 0;          // so many rows from the first on; the others are held out
};

// A line is four numbers and a class, with commas between them.
Table read_table(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read");
  Table table;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    float value = 0;
    for (int64_t i = 0; i < kColumns && words >> value; ++i) table.columns.push_back(value);
    int32_t kind = -1;
    if (!(words >> kind) || kind < 0 || kind >= kClasses)
      throw std::runtime_error(path + ":" + std::to_string(number) +
                               ": four numbers and a class from 0 to 2 were expected");
    table.classes.push_back(kind);
  }
  if (table.classes.size() < 10) throw std::runtime_error(path + " has less than ten rows");
  table.learned = table.classes.size() - table.classes.size() / 10;
  return table;
}

// Read once, by whoever asks first: batches are filled by several threads.
const Table& table_of(const BatchView& batch) {
  static const Table table = read_table(batch.keys<Keys>().file);
  return table;
}

void copy_row(const Table& table, uint64_t from, const BatchView& batch, uint64_t to) {
  const auto row = table.columns.begin() + static_cast<std::ptrdiff_t>(from * kColumns);
  std::copy_n(row, kColumns, batch.f32("columns").data() + to * kColumns);
  batch.i32("classes")[to] = table.classes[from];
}

// Batch `position` follows from the position alone. The key of the order is the epoch.
void fill(uint64_t position, BatchView batch) {
  const Table& table = table_of(batch);
  const auto rows = static_cast<uint64_t>(batch.rows());
  for (uint64_t i = 0; i < rows; ++i) {
    const uint64_t at = position * rows + i;
    const Permutation order(table.learned, at / table.learned);
    copy_row(table, order(at % table.learned), batch, i);
  }
}

void fill_held_out(uint64_t position, BatchView batch) {
  const Table& table = table_of(batch);
  const auto rows = static_cast<uint64_t>(batch.rows());
  for (uint64_t i = 0; i < rows; ++i)
    copy_row(table, table.learned + (position * rows + i) % (table.classes.size() - table.learned),
             batch, i);
}
// [end]

}  // namespace

int main(int argc, char** argv) {
  const std::vector<BatchField> fields = {{"columns", f32, {32, kColumns}}, {"classes", i32, {32}}};
  OwnModel model{.loss = loss, .data = batches(fields, fill), .unit = "rows"};
  model.evaluation = batches(fields, fill_held_out);
  model.metrics = {{"accuracy", "accuracy"}};
  model.keys = {key<&Keys::file>("data.file", {}, "table of four numbers and a class a line")};
  model.keys[0].names_file = true;
  model.settings = {"train.steps=300", "optim.learning_rate=0.01"};
  return app(argc, argv, model);
}
