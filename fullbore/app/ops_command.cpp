#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/commands.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "fullbore/base/text.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_signature.h"

namespace fullbore {
namespace {

struct OpsArguments {
  std::string name;
  bool json = false;
};

std::vector<std::string> tag_names(const OpDef& op) {
  static constexpr std::pair<Tag, const char*> kNames[] = {
      {Tag::elementwise, "elementwise"}, {Tag::reduction, "reduction"},
      {Tag::movement, "movement"},       {Tag::contraction, "contraction"},
      {Tag::composite, "composite"},     {Tag::region, "region"},
      {Tag::source, "source"},           {Tag::commutative, "commutative"},
      {Tag::identity, "identity"},       {Tag::zero_gradient, "zero_gradient"}};
  std::vector<std::string> names;
  for (const auto& [tag, name] : kNames)
    if (op.is(tag)) names.emplace_back(name);
  return names;
}

std::string gradient_rule(const OpDef& op) {
  if (op.vjp != nullptr) return "its own rule";
  if (op.is(Tag::zero_gradient)) return "none: cotangents stop here";
  // autodiff differentiates a body itself (autodiff/loop_gradient.h), or op by op.
  if (op.name == "loop") return "another loop, whose body is the gradient of its body";
  if (op.decompose != nullptr) return "through its decomposition";
  return "none";
}

std::vector<std::string> dtype_names(const std::vector<DType>& dtypes) {
  std::vector<std::string> names;
  for (const DType dtype : dtypes) names.emplace_back(dtype_name(dtype));
  return names;
}

std::string call_text(const OpDef& op, const Sample& sample);

nlohmann::ordered_json to_json(const OpSignature& signature) {
  auto attributes = nlohmann::ordered_json::array();
  for (const OpSignature::Attribute& each : signature.attributes) {
    attributes.push_back({{"name", each.name},
                          {"type", each.type},
                          {"required", each.required},
                          {"examples", each.values}});
    if (!each.default_value) continue;
    auto& value = attributes.back()["default"];  // null where the node is without the attribute
    if (each.default_value->value) value = *each.default_value->value;
  }
  auto operands = nlohmann::ordered_json::array();
  for (const OpSignature::Operand& each : signature.operands)
    operands.push_back({{"name", each.name},
                        {"required", each.required},
                        {"dtypes", dtype_names(each.dtypes)},
                        {"ranks", {each.least_rank, each.largest_rank}},
                        {"gradient", each.has_gradient}});
  auto results = nlohmann::ordered_json::array();
  for (const OpSignature::Result& each : signature.results)
    results.push_back({{"required", each.required}, {"dtype", each.dtype}, {"shape", each.shape}});
  return {{"attributes", attributes},
          {"operands", operands},
          {"variadic", signature.variadic},
          {"body", signature.has_body},
          {"results", results}};
}

nlohmann::ordered_json to_json(const OpDef& op) {
  nlohmann::ordered_json record = {{"name", op.name},
                                   {"summary", op.summary},
                                   {"tags", tag_names(op)},
                                   {"dtypes", dtype_names(op.dtypes)},
                                   {"differentiable", has_gradient(op)},
                                   {"gradient", gradient_rule(op)},
                                   {"decomposes", op.decompose != nullptr}};
  record.update(to_json(op_signature(op)));
  auto examples = nlohmann::ordered_json::array();
  for (const Sample& sample : op.samples()) examples.push_back(call_text(op, sample));
  record["examples"] = examples;
  return record;
}

/// "softmax(f32[4,8]) {axis=-1} -> f32[4,8]" of one of the op's own samples.
std::string call_text(const OpDef& op, const Sample& sample) {
  std::vector<TensorType> types;
  std::vector<std::string> inputs;
  for (const SampleInput& input : sample.inputs) {
    types.push_back(input.type);
    inputs.push_back(input.type.text());
  }
  std::vector<std::string> outputs;
  for (const TensorType& type :
       op.infer({op, types, sample.attributes, sample.body.get(), SourceLoc{}}))
    outputs.push_back(type.text());
  const std::string attributes = sample.attributes.text();
  return fmt::format("{}({}){}{} -> {}", op.name, fmt::join(inputs, ", "),
                     attributes.empty() ? "" : " ", attributes, fmt::join(outputs, ", "));
}

void print_signature(const OpSignature& signature) {
  const auto optional = [](bool required) { return required ? "" : ", optional"; };
  if (!signature.operands.empty()) print_output("\nOperands:\n");
  for (const OpSignature::Operand& each : signature.operands)
    print_output("  {:<20} {}{}{}\n", each.name, fmt::join(dtype_names(each.dtypes), " "),
                 optional(each.required), each.has_gradient ? ", has a gradient" : "");
  if (signature.variadic) print_output("  ...                  and more\n");
  if (!signature.attributes.empty()) print_output("\nAttributes:\n");
  for (const OpSignature::Attribute& each : signature.attributes)
    print_output("  {:<20} {}{}{}\n", each.name, each.type, optional(each.required),
                 each.default_value && each.default_value->value
                     ? ", default " + *each.default_value->value
                     : "");
  print_output("\nResults:\n");
  for (size_t i = 0; i < signature.results.size(); ++i) {
    const OpSignature::Result& each = signature.results[i];
    print_output("  {:<20} dtype {}, shape {}{}\n", i, each.dtype, each.shape,
                 optional(each.required));
  }
}

void print_details(const OpDef& op) {
  print_output("{}: {}\n\n", op.name, op.summary);
  print_output("  tags       {}\n", fmt::join(tag_names(op), " "));
  const std::vector<std::string> dtypes = dtype_names(op.dtypes);
  print_output("  tested in  {}\n", dtypes.empty() ? "integers and booleans"
                                                   : fmt::format("{}", fmt::join(dtypes, " ")));
  print_output("  gradient   {}\n", gradient_rule(op));
  if (op.decompose != nullptr) print_output("  defined by its decomposition into other ops\n");
  print_signature(op_signature(op));
  if (op.samples != nullptr) {
    print_output("\nSamples, which every test of the op runs:\n");
    for (const Sample& sample : op.samples())
      print_output("  {:<28} {}\n", sample.why, call_text(op, sample));
  }
  if (op.error_samples != nullptr) {
    print_output("\nRefused:\n");
    for (const ErrorSample& sample : op.error_samples())
      print_output("  {:<28} \"... {} ...\"\n", sample.why, sample.message_contains);
  }
}

void print_table(const std::vector<const OpDef*>& ops) {
  size_t name_width = 0;
  size_t tags_width = 0;
  for (const OpDef* op : ops) {
    name_width = std::max(name_width, op->name.size());
    tags_width = std::max(tags_width, fmt::format("{}", fmt::join(tag_names(*op), " ")).size());
  }
  for (const OpDef* op : ops)
    print_output("{:<{}}  {:<{}}  {}\n", op->name, name_width,
                 fmt::format("{}", fmt::join(tag_names(*op), " ")), tags_width, op->summary);
}

ExitCode run_ops(const OpsArguments& arguments) {
  std::vector<const OpDef*> ops = all_ops();
  if (!arguments.name.empty()) {
    const OpDef* op = find_op(arguments.name);
    if (op == nullptr) {
      std::vector<std::string> names;
      for (const OpDef* known : ops) names.emplace_back(known->name);
      throw UsageError(fmt::format("there is no op '{}'.{} 'fullbore ops' lists them.",
                                   arguments.name, did_you_mean(arguments.name, names)));
    }
    ops = {op};
  }
  if (arguments.json) {
    auto list = nlohmann::ordered_json::array();
    for (const OpDef* op : ops) list.push_back(to_json(*op));
    write_output(json_text(list));
  } else if (arguments.name.empty()) {
    print_table(ops);
  } else {
    print_details(*ops.front());
  }
  return ExitCode::kOk;
}

}  // namespace

void add_ops_command(Command root) {
  Command command = root.add_subcommand("ops", "List the operations, or tell all about one");
  auto arguments = std::make_shared<OpsArguments>();
  command.add_option("NAME", arguments->name, "Operation to describe");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer("\nExample:\n  fullbore ops\n  fullbore ops softmax");
  command.runs([arguments] { return run_ops(*arguments); });
}

}  // namespace fullbore
