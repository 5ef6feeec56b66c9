#include "fuzz/mutate_model.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/files.h"
#include "fuzz/mutate_text.h"
#include "ir/visitor.h"
#include "test_paths.h"

namespace collage::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// An empty model that knows its fields; the classes generated for the importer do not.
const Message& prototype() {
  static google::protobuf::DescriptorPool pool;
  static google::protobuf::DynamicMessageFactory factory;
  static const Message* model = [] {
    google::protobuf::SetLogHandler(nullptr);  // it complains of every name that is no UTF-8
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

}  // namespace

std::string with_other_fields(const std::string& model, Random& random) {
  if (random.one_in(12)) return with_other_bytes(model, random);
  const std::unique_ptr<Message> message(prototype().New());
  message->ParseFromString(model);
  for (size_t n = 1 + random.below(2) * random.below(4); n > 0; --n) change(*message, random);
  return message->SerializeAsString();
}

double elements_of(const Module& module) {
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

}  // namespace collage::fuzz
