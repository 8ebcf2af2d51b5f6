// Any bytes as a file of records or of a published corpus: each line is read as a record that can be written again, or
// refused by file and line.
#include <string_view>

#include "tests/fuzz/memory_file.h"
#include "workloads/chess/record_file.h"

using namespace fullbore;
using namespace fullbore::chess;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool skip : {false, true}) {
    int64_t taken = 0;
    const Result<CorpusCounts> counts =
        parse_records(text, "input", {.skip_malformed = skip}, [&](ChessRecord&& record) -> Status {
          ++taken;
          require(record.text().size() <= size + 8);
          const Result<ChessRecord> again = parse_record_line(record_line(record));
          require(again.ok());
          require(again.value().fen == record.fen && again.value().top == record.top);
          return success();
        });
    require(counts.ok() || (!skip && counts.error().starts_with("input:")));
    if (counts.ok()) require(counts.value().records == taken);
  }
  return 0;
}
