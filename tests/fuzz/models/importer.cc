// ONNX models: those of the ONNX test suite, and one that keeps its weights in a file, with fields
// of their messages changed; seldom, bytes.
#include "frontend/onnx/importer.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>
#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_text.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "test_paths.h"

namespace collage::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr const char* kSuite = "/usr/share/libonnx-testdata/data/node";
constexpr size_t kEvery = 6, kMostBytes = 16'384;

const std::filesystem::path& model_file() {
  static const std::filesystem::path file = std::filesystem::path(scratch_folder()) / "model.onnx";
  return file;
}

Result<ImportedModel> imported(const std::string& bytes) {
  std::ofstream(model_file(), std::ios::binary) << bytes;
  ImportOptions options;
  options.max_bytes = size_t{256} << 20;
  return import_onnx(model_file(), options);
}

// y = x + w, with w in a file beside the model.
std::string with_external_data() {
  std::ofstream(std::filesystem::path(scratch_folder()) / "w.bin", std::ios::binary)
      << std::string(64, '\1');
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("g");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Add");
  node.add_input("x");
  node.add_input("w");
  node.add_output("y");
  onnx::TensorProto& w = *graph.add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(4);
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] :
       {std::pair("location", "w.bin"), std::pair("offset", "16"), std::pair("length", "16")}) {
    onnx::StringStringEntryProto& entry = *w.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  for (onnx::ValueInfoProto* value : {graph.add_input(), graph.add_output()}) {
    onnx::TypeProto::Tensor& type = *value->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(4);
  }
  graph.mutable_input(0)->set_name("x");
  graph.mutable_output(0)->set_name("y");
  return model.SerializeAsString();
}

std::vector<std::string> seeds() {
  std::vector<std::filesystem::path> folders;
  for (const auto& folder : std::filesystem::directory_iterator(kSuite))
    folders.push_back(folder.path());
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> models(6, with_external_data());
  for (size_t i = 0; i < folders.size(); i += kEvery) {
    const Result<std::string> bytes = read_file(folders[i] / "model.onnx");
    if (bytes.ok() && bytes->size() <= kMostBytes && imported(*bytes).ok())
      models.push_back(*bytes);
  }
  return models;
}

// An empty model that knows its fields; the classes generated for the importer do not.
const Message& prototype() {
  static google::protobuf::DescriptorPool pool;
  static google::protobuf::DynamicMessageFactory factory;
  static const Message* model = [] {
    google::protobuf::FileDescriptorSet files;
    if (files.ParseFromString(*read_file(COLLAGE_ONNX_DESCRIPTION)))
      for (const auto& file : files.file()) pool.BuildFile(file);
    return factory.GetPrototype(pool.FindMessageTypeByName("onnx.ModelProto"));
  }();
  return *model;
}

void collect(Message& message, std::vector<Message*>& found) {
  found.push_back(&message);
  const Reflection& access = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  access.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      collect(*access.MutableMessage(&message, field), found);
    } else {
      for (int i = 0; i < access.FieldSize(message, field); ++i)
        collect(*access.MutableRepeatedMessage(&message, field, i), found);
    }
  }
}

int64_t unusual_integer(Random& random) {
  static const std::vector<int64_t> kValues = {
      0,   1,     -1,      2,         3,         7,         11,        16,        17, 64,
      255, 65536, 1 << 20, INT32_MAX, INT32_MIN, 1LL << 40, INT64_MAX, INT64_MIN, -2, 1LL << 62};
  return random.one_in(3) ? static_cast<int64_t>(random.below(24)) : random.pick(kValues);
}

std::string unusual_string(const std::string& old, const std::vector<std::string>& names,
                           Random& random) {
  switch (random.below(6)) {
    case 0:
      return "";
    case 1:
      return with_other_bytes(old, random);
    case 2:
      return old + "/../" + old;
    case 3:
      return unusual_number(random);
    default:
      return names.empty() ? old : random.pick(names);
  }
}

// One value of a field that is not repeated, or of an element of one that is.
void set(Message& message, const FieldDescriptor* field, int at,
         const std::vector<std::string>& names, Random& random) {
  const Reflection& access = *message.GetReflection();
  const bool one = at < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      one ? access.SetInt64(&message, field, unusual_integer(random))
          : access.SetRepeatedInt64(&message, field, at, unusual_integer(random));
      return;
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto value = static_cast<int32_t>(unusual_integer(random));
      one ? access.SetInt32(&message, field, value)
          : access.SetRepeatedInt32(&message, field, at, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const auto value = static_cast<float>(std::atof(unusual_number(random).c_str()));
      one ? access.SetFloat(&message, field, value)
          : access.SetRepeatedFloat(&message, field, at, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      if (one) access.SetEnumValue(&message, field, static_cast<int>(random.below(24)));
      return;
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string old =
          one ? access.GetString(message, field) : access.GetRepeatedString(message, field, at);
      const std::string value = unusual_string(old, names, random);
      one ? access.SetString(&message, field, value)
          : access.SetRepeatedString(&message, field, at, value);
      return;
    }
    default:
      return;
  }
}

void change(Message& model, Random& random) {
  std::vector<Message*> all;
  collect(model, all);
  std::vector<std::string> names;
  for (Message* message : all) {
    const Reflection& access = *message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    access.ListFields(*message, &fields);
    for (const FieldDescriptor* field : fields)
      if (field->type() == FieldDescriptor::TYPE_STRING) {
        if (!field->is_repeated()) names.push_back(access.GetString(*message, field));
        for (int i = 0; field->is_repeated() && i < access.FieldSize(*message, field); ++i)
          names.push_back(access.GetRepeatedString(*message, field, i));
      }
  }
  Message& message = *all[random.below(all.size())];
  const Reflection& access = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  access.ListFields(message, &fields);
  if (random.one_in(8) || fields.empty()) {  // a field that was not there
    const auto* type = message.GetDescriptor();
    const FieldDescriptor* field =
        type->field(static_cast<int>(random.below(static_cast<size_t>(type->field_count()))));
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated())
        access.MutableMessage(&message, field);
      else
        access.AddMessage(&message, field);
    } else if (!field->is_repeated()) {
      set(message, field, -1, names, random);
    }
    return;
  }
  const FieldDescriptor* field = random.pick(fields);
  if (random.one_in(12)) {
    access.ClearField(&message, field);
    return;
  }
  if (!field->is_repeated()) {
    set(message, field, -1, names, random);
    return;
  }
  const int size = access.FieldSize(message, field);
  const int at = static_cast<int>(random.below(static_cast<size_t>(size)));
  switch (random.below(6)) {
    case 0:
      access.SwapElements(&message, field, at, size - 1);
      access.RemoveLast(&message, field);
      return;
    case 1:
      access.SwapElements(&message, field, at,
                          static_cast<int>(random.below(static_cast<size_t>(size))));
      return;
    case 2:
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
        access.AddMessage(&message, field)->CopyFrom(access.GetRepeatedMessage(message, field, at));
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64)
        access.AddInt64(&message, field, unusual_integer(random));
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
        access.AddString(&message, field, names.empty() ? "" : random.pick(names));
      return;
    default:
      set(message, field, at, names, random);
  }
}

// Of all values that a run makes, inputs that nothing reads among them.
double work_of(const Module& module) {
  double elements = 0;
  const auto add = [&](const Expr& expr) {
    for (const TensorType& leaf : expr->type().leaves()) {
      double most = 1;
      for (const int64_t extent : leaf.shape) most *= static_cast<double>(extent);
      elements += most;
    }
  };
  for (const auto& [name, function] : module.functions) {
    for (const Expr& param : function->params) add(param);
    for (const Expr& expr : post_order(function->body)) add(expr);
  }
  return elements;
}

Outcome run_model(const std::string& input) {
  onnx::ModelProto model;
  if (!model.ParseFromString(input)) {
    EXPECT_FALSE(imported(input).ok());
    return Outcome::kNoSyntax;
  }
  const Result<ImportedModel> read = imported(input);
  (void)inspect_onnx(model_file());
  if (!read.ok()) {
    EXPECT_NE(read.status().code(), ErrorCode::kOk);
    EXPECT_FALSE(read.status().message().empty());
    return Outcome::kRefused;
  }
  if (work_of(read->module) > 10'000) return Outcome::kAccepted;
  // A run may refuse values (an index out of range), but nothing else.
  std::vector<Tensor> inputs;
  for (const Expr& param : read->module.main()->params)
    inputs.push_back(Tensor::zeros(param->tensor_type().dtype, param->tensor_type().shape));
  const Result<std::vector<Tensor>> values = interpret(read->module.main(), inputs);
  if (!values.ok()) {
    EXPECT_NE(values.status().code(), ErrorCode::kInternal) << values.status().to_string();
  }
  return Outcome::kAccepted;
}

}  // namespace

FuzzTarget importer() {
  google::protobuf::SetLogHandler(nullptr);  // it complains of every name that is no UTF-8
  register_all_ops();
  const std::vector<std::string> models = seeds();
  return {"importer", models,
          [models](Random& random) {
            const std::string& seed = random.pick(models);
            if (random.one_in(12)) return with_other_bytes(seed, random);
            const std::unique_ptr<Message> model(prototype().New());
            model->ParseFromString(seed);
            for (size_t n = 1 + random.below(2) * random.below(4); n > 0; --n)
              change(*model, random);
            return model->SerializeAsString();
          },
          run_model};
}

}  // namespace collage::fuzz
