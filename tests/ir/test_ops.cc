#include "test_ops.h"

#include <cstring>
#include <random>

#include "ir/op.h"

namespace collage {

namespace {

Result<Type> same_as_first(std::span<const Type> args, const Attrs&) {
  if (!args[0].is_tensor()) return bad_model("the argument is no tensor");
  for (const Type& arg : args)
    if (!(arg == args[0])) return bad_model("arguments differ: {}", arg.to_string());
  return args[0];
}

Result<Type> split_type(std::span<const Type> args, const Attrs& attrs) {
  int64_t parts = attrs.integer("parts");
  TensorType part = args[0].tensor();
  if (parts < 1 || part.shape.empty() || part.shape[0] % parts != 0)
    return bad_model("cannot split {} in {}", part.to_string(), parts);
  part.shape[0] /= parts;
  return Type::tuple(std::vector<Type>(static_cast<size_t>(parts), part));
}

Result<Type> concat_type(std::span<const Type> args, const Attrs&) {
  TensorType whole = args[0].fields().at(0).tensor();
  whole.shape[0] = 0;
  for (const Type& field : args[0].fields()) whole.shape[0] += field.tensor().shape[0];
  return Type(whole);
}

OpDef op(std::string name, int args, std::vector<AttrSpec> attrs,
         decltype(OpDef::infer_type) infer) {
  OpDef def;
  def.name = std::move(name);
  def.min_args = def.max_args = args;
  def.attrs = std::move(attrs);
  def.infer_type = std::move(infer);
  return def;
}

Tensor random_tensor(std::mt19937_64& rng, DType dtype, Shape shape) {
  Tensor tensor = Tensor::empty(dtype, std::move(shape));
  auto* bytes = static_cast<unsigned char*>(tensor.raw());
  for (size_t i = 0; i < tensor.bytes(); ++i)
    bytes[i] = dtype == DType::kBool ? rng() % 2 : static_cast<unsigned char>(rng());
  // Random bits give few ordinary numbers: mix some in.
  if (dtype == DType::kFloat32)
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (rng() % 8 != 0)
        tensor.data<float>()[i] = static_cast<float>(static_cast<int64_t>(rng() % 2001) - 1000) / 7;
  return tensor;
}

}  // namespace

void register_test_ops() {
  static bool once = [] {
    register_op(
        op("test.unary", 1, {{"alpha", 1.0}, {"mode", std::string("none")}}, same_as_first));
    register_op(op("test.add", 2, {}, same_as_first));
    register_op(op("test.split", 1, {{"parts", int64_t{1}, true}}, split_type));
    register_op(op("test.concat", 1, {}, concat_type));
    register_op(op("test.attrs", 1,
                   {{"flag", false},
                    {"whole", int64_t{0}},
                    {"real", 0.0},
                    {"text", std::string()},
                    {"dtype", DType::kFloat32},
                    {"ints", Ints{}},
                    {"lists", IntLists{}},
                    {"reals", std::vector<double>{}},
                    {"any", None{}}},
                   same_as_first));
    return true;
  }();
  (void)once;
}

Function random_function(uint64_t seed, int size) {
  register_test_ops();
  std::mt19937_64 rng(seed);
  auto pick = [&](auto& list) -> auto& { return list[rng() % list.size()]; };
  TensorType type{{static_cast<int64_t>(4 + 4 * (rng() % 3)), 3}, DType::kFloat32};
  std::vector<Expr> params, values;
  static const std::vector<std::string> kNames = {"x", "input:0", "0", "ünï", "a.b", "", "x\"\n\\"};
  for (int i = 0; i < 3; ++i) params.push_back(make_var(pick(kNames), type));
  values = params;
  for (int i = 0; i < size; ++i) {
    Expr x = pick(values), y = pick(values);
    switch (rng() % 8) {
      case 0:
        values.push_back(
            *make_call("test.unary", {x}, {{"alpha", static_cast<double>(rng()) / 3}}));
        break;
      case 1:
        values.push_back(make_constant(random_tensor(rng, type.dtype, type.shape)));
        break;
      case 2: {
        Expr parts = *make_call("test.split", {x}, {{"parts", int64_t{2}}});
        Expr a = *make_tuple_get_item(parts, 0), b = *make_tuple_get_item(parts, 1);
        values.push_back(*make_call("test.concat", {make_tuple({b, a})}));
        break;
      }
      case 3: {
        std::vector<Expr> inner = {make_var("x", type), make_var("y", type)};
        Expr body = *make_call("test.add", {inner[0], inner[1]});
        if (rng() % 2) body = *make_call("test.add", {body, body});
        Expr f = make_function(inner, body, {{"Primitive", int64_t{1}}, {"Compiler", "b"}});
        values.push_back(*make_function_call(f, {x, y}));
        if (rng() % 2) values.push_back(*make_function_call(f, {y, x}));
        break;
      }
      case 4: {
        auto dtype = static_cast<DType>(rng() % 13);
        Shape shape;
        for (size_t rank = rng() % 3; rank > 0; --rank)
          shape.push_back(static_cast<int64_t>(rng() % 12));
        Expr pair = make_tuple({make_constant(random_tensor(rng, dtype, shape)), x});
        values.push_back(*make_tuple_get_item(pair, 1));
        break;
      }
      default:
        values.push_back(*make_call("test.add", {x, y}));
    }
  }
  std::vector<Expr> results(values.end() - 3, values.end());
  return make_function(params, rng() % 2 ? make_tuple(results) : results[0]);
}

}  // namespace collage
