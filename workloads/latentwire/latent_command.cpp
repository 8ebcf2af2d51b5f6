#include "workloads/latentwire/latent_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/ckpt/checkpoint.h"
#include "fullbore/data/utf8.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/prompt_source.h"
#include "workloads/latentwire/trained_latent.h"
#include "workloads/latentwire/wire_file.h"

namespace fullbore::latentwire {
namespace {

struct EncodeArguments {
  std::vector<std::string> frozen_from;
  std::string model, context, question, output;
  int64_t bits = 16, group = 32;
  bool cut = false, force = false;
};

struct DecodeArguments {
  std::vector<std::string> frozen_from;
  std::string model, receiver;
  std::vector<std::string> wires;
};

struct ExportArguments {
  std::vector<std::string> frozen_from;
  std::string model, wire, receiver, output;
  bool force = false;
};

std::string checked_text(const std::string& text, const char* option) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw UsageError(fmt::format("latentwire encode: {} is empty", option));
  if (const size_t taken = decode_utf8(text, [](char32_t) {}); taken < text.size())
    throw UsageError(fmt::format("latentwire encode: {} is not UTF-8: byte {}: {}", option, taken,
                                 describe_utf8_error(text, taken)));
  return text;
}

ExitCode encode(const EncodeArguments& arguments) {
  Prompt prompt;
  prompt.context = "Context: " + checked_text(arguments.context, "--context") + "\n";
  prompt.question = "Question: " + checked_text(arguments.question, "--question") + "\n";
  check_output_file(arguments.output);
  refuse_existing(arguments.output, arguments.force);
  TrainedLatent model(arguments.model, {.rows = 1, .frozen_from = arguments.frozen_from});
  const WireForm form{model.slots(), model.width(), arguments.bits, arguments.group};
  if (const Status status = check_wire_form(form); !status)
    throw UsageError("latentwire encode: " + status.error());
  const LatentKeys::Wire& keys = latent_keys(model.config()).wire;
  EncoderText text = encoder_text(prompt, keys.question_first, keys.max_bytes);
  const size_t bytes = prompt.source().size();
  if (text.cut && !arguments.cut)
    throw UsageError(fmt::format(
        "latentwire encode: a prompt of {} bytes; the encoder reads {} (wire.max_bytes); --cut "
        "leaves out the middle of the context",
        bytes, keys.max_bytes));
  if (!text.cut && !arguments.cut && !model.reads_whole(text.bytes))
    throw UsageError(fmt::format(
        "latentwire encode: the prompt has more tokens than the {} that the encoder reads "
        "(wire.max_tokens); --cut leaves out what is behind them",
        keys.max_tokens));
  const std::vector<float> z = model.encode(std::vector<std::string>{text.bytes});
  Wire wire{model.fingerprint(), form, {}};
  wire.numbers = quantize_wire(z, form).take_or_throw();
  if (const Status status = write_wire(wire, arguments.output); !status)
    throw DataError(status.error());
  print_output("{}: {} x {} numbers of {} bits: {} bytes in place of {}, ratio {:.3f}\n",
               arguments.output, form.slots, form.width, form.bits, form.bytes(), bytes,
               static_cast<double>(bytes) / static_cast<double>(form.bytes()));
  for (const Receiver& each : model.receivers()) {
    const auto tokens = std::ssize(each.ids(prompt.source()));
    print_output("  {}: {} vectors in place of {} tokens, ratio {:.2f}\n", each.name,
                 model.prefix_length(), tokens,
                 static_cast<double>(tokens) / static_cast<double>(model.prefix_length()));
  }
  return ExitCode::kOk;
}

// Indices of those that are named; all for "".
std::vector<size_t> receivers_named(const TrainedLatent& model, const std::string& name) {
  std::vector<size_t> found;
  std::string all;
  for (size_t i = 0; i < model.receivers().size(); ++i) {
    const std::string& each = model.receivers()[i].name;
    if (name.empty() || name == each) found.push_back(i);
    all += (all.empty() ? "" : ", ") + each;
  }
  if (found.empty())
    throw UsageError(fmt::format("--receiver {}: {} has {}", name, model.path(), all));
  return found;
}

std::vector<float> wire_of(const TrainedLatent& model, const std::string& path) {
  const Wire wire = read_wire(path).take_or_throw();
  if (const Status status =
          check_wire(wire, model.fingerprint(), model.slots(), model.width(), path);
      !status)
    throw DataError(status.error());
  return wire.z();
}

ExitCode decode(const DecodeArguments& arguments) {
  TrainedLatent model(arguments.model, {.rows = 1, .frozen_from = arguments.frozen_from});
  const std::vector<size_t> receivers = receivers_named(model, arguments.receiver);
  for (const std::string& path : arguments.wires) {
    const std::vector<float> wire = wire_of(model, path);
    for (const size_t i : receivers) {
      const Receiver& receiver = model.receivers()[i];
      print_output("{}  {}: {}\n", path, receiver.name,
                   receiver.answer_text(model.write({.wires = wire}, i)[0]));
    }
  }
  return ExitCode::kOk;
}

ExitCode export_prefix(const ExportArguments& arguments) {
  check_output_file(arguments.output);
  refuse_existing(arguments.output, arguments.force);
  TrainedLatent model(arguments.model, {.rows = 1, .frozen_from = arguments.frozen_from});
  const std::vector<size_t> receivers = receivers_named(model, arguments.receiver);
  if (receivers.size() > 1)
    throw UsageError(
        "latentwire export-prefix: there are several receivers; name one by --receiver");
  const Receiver& receiver = model.receivers()[receivers[0]];
  const std::vector<float> prefix = model.prefixes(wire_of(model, arguments.wire), receivers[0]);
  const TensorType type{DType::f32, {model.prefix_length(), receiver.decoder.width}};
  const std::vector<NamedTensor> tensors = {{"prefix", type, prefix.data()}};
  const Metadata metadata = {{"anchor", receiver.anchor}, {"receiver", receiver.name}};
  if (const Status status = write_checkpoint(arguments.output, tensors, metadata); !status)
    throw DataError(status.error());
  print_output("{}: prefix f32 [{}, {}], to stand before the anchor '{}'\n", arguments.output,
               type.shape[0], type.shape[1], receiver.anchor);
  return ExitCode::kOk;
}

void add_encode(Command latentwire) {
  Command command = latentwire.add_subcommand("encode", "Write a prompt as a wire");
  auto arguments = std::make_shared<EncodeArguments>();
  command
      .add_option("RUN_OR_CHECKPOINT", arguments->model,
                  "Run directory (its best checkpoint) or a checkpoint")
      .required();
  command.add_option("--context", arguments->context, "What the answer stands in").required();
  command.add_option("--question", arguments->question, "What is asked").required();
  command.add_option("-o,--output", arguments->output, "The file to write").required();
  command.add_option("--bits", arguments->bits, "Of a number: 16, or 2 to 8")
      .between(int64_t{2}, int64_t{16})
      .shows_default();
  command.add_option("--group", arguments->group, "Numbers that share a scale")
      .between(int64_t{1}, int64_t{65536})
      .shows_default();
  add_frozen_option(command, arguments->frozen_from);
  command.add_flag("--cut", arguments->cut, "Leave out the middle of a context that is too long");
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(R"(
Two ratios are printed: bytes of the text to bytes of the wire, and tokens of each receiver to its vectors.

Example:
  fullbore latentwire encode runs/latentwire-ci-1 --context "The price is 42." --question "What is the price?" -o a.wire)");
  command.runs([arguments] { return encode(*arguments); });
}

void add_decode(Command latentwire) {
  Command command = latentwire.add_subcommand("decode", "Answer prompts from their wires");
  auto arguments = std::make_shared<DecodeArguments>();
  command
      .add_option("RUN_OR_CHECKPOINT", arguments->model,
                  "Run directory (its best checkpoint) or a checkpoint, of the same encoder")
      .required();
  command.add_option("WIRE", arguments->wires, "Files of `latentwire encode`").required();
  command.add_option("--receiver", arguments->receiver, "Only this one");
  add_frozen_option(command, arguments->frozen_from);
  command.footer(R"(
Example:
  fullbore latentwire decode runs/latentwire-ci-1 prompt.wire)");
  command.runs([arguments] { return decode(*arguments); });
}

void add_export_prefix(Command latentwire) {
  Command command = latentwire.add_subcommand(
      "export-prefix", "Write what a receiver reads in place of a prompt, as safetensors");
  auto arguments = std::make_shared<ExportArguments>();
  command
      .add_option("RUN_OR_CHECKPOINT", arguments->model,
                  "Run directory (its best checkpoint) or a checkpoint, of the same encoder")
      .required();
  command.add_option("WIRE", arguments->wire, "File of `latentwire encode`").required();
  command.add_option("--receiver", arguments->receiver, "Whose; needed where there are several");
  add_frozen_option(command, arguments->frozen_from);
  command.add_option("-o,--output", arguments->output, "The file to write").required();
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(R"(
The tensor `prefix` [vectors, width] is for servers that take embeddings of a prompt; the anchor's tokens
follow it.

Example:
  fullbore latentwire export-prefix runs/latentwire-ci-1 prompt.wire --receiver bpe -o prefix.safetensors)");
  command.runs([arguments] { return export_prefix(*arguments); });
}

}  // namespace

void add_latent_command(Command root) {
  Command latentwire =
      root.add_subcommand("latentwire", "Prompts as a few vectors for frozen language models");
  latentwire.require_subcommand();
  add_prepare_command(latentwire);
  add_encode(latentwire);
  add_decode(latentwire);
  add_export_prefix(latentwire);
  add_bench_switches_command(latentwire);
  latentwire.footer(R"(
Example:
  fullbore latentwire prepare
  fullbore train configs/latentwire-ci.yaml)");
}

}  // namespace fullbore::latentwire
