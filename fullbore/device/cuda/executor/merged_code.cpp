#include "fullbore/device/cuda/executor/merged_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "fullbore/base/check.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kTableBytes = 4000;  // of 4096 that all cards have for parameters
constexpr std::string_view kEntry = ".visible .entry ";
// What depends on where parameters lie, or on the blocks beside a block.
constexpr std::string_view kRefused[] = {"cvta.param", "tensormap", ".tensor.", "cluster"};

int64_t bytes_of(const Argument& argument) {
  return argument.operand >= 0 ? int64_t{8} : static_cast<int64_t>(argument.bytes.size());
}

/// Where each argument lies in a record, and the record's end. First come two numbers of blocks.
struct Record {
  std::vector<int64_t> offsets;
  int64_t bytes = 8;

  explicit Record(const Launch& launch) {
    for (const Argument& argument : launch.arguments) {
      const int64_t count = bytes_of(argument);
      const int64_t alignment = count == 1 || count == 2 || count == 4 ? count : 8;
      bytes = (bytes + alignment - 1) / alignment * alignment;
      offsets.push_back(bytes);
      bytes += count;
    }
    bytes = (bytes + 7) / 8 * 8;
  }
};

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

/// "[entry_param_3+8]" as "[%merged_record+<offset of 3 + 8>]", "mov.b64 %rd1, entry_param_3" as an addition. False if the
/// name of a parameter stands anywhere else.
bool replace_parameters(std::string& body, const std::string& entry, const Record& record) {
  const std::string name = entry + "_param_";
  constexpr std::string_view kMove = "mov.b64 ";
  for (size_t at = body.find(name); at != std::string::npos; at = body.find(name, at)) {
    const char* const end = body.data() + body.size();
    size_t index = 0;
    const char* next = std::from_chars(body.data() + at + name.size(), end, index).ptr;
    if (index >= record.offsets.size()) return false;
    int64_t offset = record.offsets[index];
    if (body[at - 1] == '[') {
      int64_t further = 0;
      if (next != end && *next == '+') next = std::from_chars(next + 1, end, further).ptr;
      if (next == end || *next != ']') return false;
      offset += further;
      body.replace(at, static_cast<size_t>(next - body.data()) - at,
                   fmt::format("%merged_record+{}", offset));
      continue;
    }
    const size_t line = body.rfind('\n', at) + 1;
    const size_t move = body.find(kMove, line);
    if (move == std::string::npos || move > at || next == end || *next != ';') return false;
    body.replace(at, static_cast<size_t>(next - body.data()) - at,
                 fmt::format("%merged_record, {}", offset));
    body.replace(move, kMove.size(), "add.s64 ");
  }
  return true;
}

/// What comes before the entry's own instructions: its record, and an end for blocks that its launch does not have.
std::string prologue(const std::string& entry, int64_t record_bytes) {
  return fmt::format(R"({{
	.reg .pred 	%merged_p<3>;
	.reg .b32 	%merged_r<4>;
	.reg .b32 	%merged_blocks_x;
	.reg .b32 	%merged_blocks_y;
	.reg .b64 	%merged_rd<3>;
	.reg .b64 	%merged_record;
	mov.b64 	%merged_rd1, {}_param_0;
	mov.u32 	%merged_r1, %ctaid.z;
	mul.wide.u32 	%merged_rd2, %merged_r1, {};
	add.s64 	%merged_record, %merged_rd1, %merged_rd2;
	ld.param.u32 	%merged_blocks_x, [%merged_record];
	ld.param.u32 	%merged_blocks_y, [%merged_record+4];
	mov.u32 	%merged_r2, %ctaid.x;
	mov.u32 	%merged_r3, %ctaid.y;
	setp.ge.u32 	%merged_p1, %merged_r2, %merged_blocks_x;
	@%merged_p1 bra 	$merged_end;
	setp.ge.u32 	%merged_p2, %merged_r3, %merged_blocks_y;
	@%merged_p2 bra 	$merged_end;
)",
                     entry, record_bytes);
}

/// One entry of a module's text, between its first line and its closing brace.
struct EntryText {
  std::string_view head;        ///< of the module: version, target, variables
  std::string_view directives;  ///< between parameters and body
  std::string_view body;        ///< between its braces
};
std::optional<EntryText> find_entry(std::string_view text, const std::string& entry) {
  const size_t first = text.find(kEntry);
  const size_t begin = text.find(fmt::format("{}{}(", kEntry, entry));
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t parameters_end = text.find("\n)", begin);
  const size_t open = text.find("\n{", begin);
  const size_t close = text.find("\n}", begin);
  if (parameters_end == std::string_view::npos || open == std::string_view::npos ||
      close == std::string_view::npos || parameters_end > open || open > close)
    return std::nullopt;
  return EntryText{text.substr(0, first),
                   text.substr(parameters_end + 2, open - parameters_end - 2),
                   text.substr(open + 2, close - open - 2)};
}

}  // namespace

std::optional<MergedCode> merged_code(const Launch& launch) {
  const Record record(launch);
  const int64_t most = kTableBytes / record.bytes;
  if (launch.grid.z != 1 || most < 2) return std::nullopt;
  const std::optional<EntryText> text = find_entry(launch.module->ptx, launch.entry);
  if (!text) return std::nullopt;
  for (const std::string_view each : kRefused)
    if (text->body.find(each) != std::string_view::npos ||
        text->directives.find(each) != std::string_view::npos)
      return std::nullopt;
  std::string body(text->body);
  if (!replace_parameters(body, launch.entry, record)) return std::nullopt;
  replace_all(body, "%nctaid.x", "%merged_blocks_x");
  replace_all(body, "%nctaid.y", "%merged_blocks_y");
  replace_all(body, "%nctaid.z", "1");
  replace_all(body, "%ctaid.z", "0");
  const std::string entry = launch.entry + "_merged";
  auto module = std::make_shared<Module>();
  module->name = launch.module->name + ", merged";
  module->ptx = fmt::format(
      "{}{}{}(\n\t.param .align 8 .b8 {}_param_0[{}]\n){}\n{}{}\n$merged_end:\n\tret;\n}}\n",
      text->head, kEntry, entry, entry, most * record.bytes, text->directives,
      prologue(entry, record.bytes), body);
  return MergedCode{std::move(module), entry, record.bytes, most};
}

std::vector<std::byte> merged_table(const MergedCode& code,
                                    std::span<const LaunchWithOperands> launches) {
  FB_CHECK(static_cast<int64_t>(launches.size()) <= code.most_launches,
           "{} launches of '{}' at once, of {} at most", launches.size(), code.entry,
           code.most_launches);
  // The driver reads as many bytes as the entry declares.
  std::vector<std::byte> table(static_cast<size_t>(code.record_bytes * code.most_launches));
  std::byte* to = table.data();
  for (const LaunchWithOperands& each : launches) {
    const Launch& launch = *each.launch;
    const Record record(launch);
    std::memcpy(to, &launch.grid.x, 4);
    std::memcpy(to + 4, &launch.grid.y, 4);
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const Argument& argument = launch.arguments[i];
      std::byte* const place = to + record.offsets[i];
      if (argument.operand < 0) {
        std::ranges::copy(argument.bytes, place);
        continue;
      }
      const uint64_t address =
          (each.operands[static_cast<size_t>(argument.operand)].address + argument.offset).value;
      std::memcpy(place, &address, sizeof(address));
    }
    to += code.record_bytes;
  }
  return table;
}

}  // namespace fullbore::cuda
