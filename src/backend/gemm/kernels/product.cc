#include "backend/gemm/kernels/product.h"

#include <cstring>

#include "ops/strided.h"
#include "runtime/huge_pages.h"
#include "runtime/saved_fields.h"
#include "runtime/shared_constants.h"

namespace collage::gemm {
namespace {

using nlohmann::json;

constexpr size_t kMostDims = 32, kMostProducts = 1 << 24;
constexpr int64_t kMostExtent = int64_t{1} << 30;

/// Whether all matrices lie within their operands and the result, and the addend extends to it.
Status check_extents(const Product& p) {
  const auto reaches = [](const std::vector<int64_t>& offsets, int rows, int columns,
                          const Shape& shape) {
    const int64_t matrix = int64_t{rows} * columns, all = num_elements(shape);
    for (const int64_t offset : offsets)
      if (offset > all || matrix > all - offset) return false;
    return true;
  };
  const int64_t matrix = int64_t{p.m} * p.n, all = num_elements(p.result);
  const auto products = static_cast<int64_t>(p.a_offsets.size());
  if (p.a_offsets.size() != p.b_offsets.size() || !reaches(p.a_offsets, p.m, p.k, p.a.shape) ||
      !reaches(p.b_offsets, p.k, p.n, p.b.shape) || matrix > all ||
      (matrix > 0 && products > all / matrix))
    return bad_model("matrices that lie outside their tensors");
  if (!p.addend) return {};
  const Shape& addend = p.addend->shape;
  bool extends = addend.size() <= p.result.size();
  for (size_t i = 0; extends && i < addend.size(); ++i) {
    const int64_t given = addend[addend.size() - 1 - i], wanted = p.result[p.result.size() - 1 - i];
    extends = given == 1 || given == wanted;
  }
  return extends ? Status() : bad_model("an addend that does not extend to the result");
}

json saved_operand(const Operand& operand, const std::shared_ptr<const void>& data,
                   SavedKernel& saved) {
  if (operand.is_constant()) saved.constants.push_back({data, operand.bytes()});
  return {{"param", operand.param}, {"shape", operand.shape}};
}

Result<std::shared_ptr<const void>> kept(const Operand& operand, bool flip) {
  if (!operand.is_constant()) return std::shared_ptr<const void>();
  std::shared_ptr<void> copy = TRY(allocate_on_huge_pages(operand.bytes()));
  Shape extents = operand.shape;
  Ints strides = dense_strides(extents);
  if (flip) {
    const size_t rank = extents.size();
    std::swap(strides[rank - 1], strides[rank - 2]);
    std::swap(extents[rank - 1], extents[rank - 2]);
    copy_strided(extents, sizeof(float), {operand.constant.raw(), 0, strides},
                 {copy.get(), 0, dense_strides(extents)});
  } else {
    std::memcpy(copy.get(), operand.constant.raw(), operand.bytes());
  }
  return shared_constant({std::move(copy), operand.bytes()}).data;
}

}  // namespace

Result<OperandData> kept_constants(Product& product, bool repacked) {
  if (repacked) product.transpose_b = !product.transpose_b;
  OperandData constants;
  constants[0] = TRY(kept(product.a, false));
  constants[1] = TRY(kept(product.b, repacked));
  if (product.addend) constants[2] = TRY(kept(*product.addend, false));
  return constants;
}

size_t constant_bytes(const Product& product) {
  size_t bytes = 0;
  for (const Operand* operand :
       {&product.a, &product.b, product.addend ? &*product.addend : nullptr})
    if (operand != nullptr && operand->is_constant()) bytes += operand->bytes();
  return bytes;
}

std::vector<int64_t> addend_strides(const Product& product) {
  return broadcast_strides(product.addend->shape, product.result);
}

json saved_product(const Product& p, const OperandData& constants, SavedKernel& saved) {
  json description = {{"a", saved_operand(p.a, constants[0], saved)},
                      {"b", saved_operand(p.b, constants[1], saved)},
                      {"alpha", p.alpha},
                      {"result", p.result},
                      {"m", p.m},
                      {"n", p.n},
                      {"k", p.k},
                      {"transpose_a", p.transpose_a},
                      {"transpose_b", p.transpose_b},
                      {"a_offsets", p.a_offsets},
                      {"b_offsets", p.b_offsets}};
  if (p.addend) description["addend"] = saved_operand(*p.addend, constants[2], saved);
  return description;
}

Result<LoadedProduct> loaded_product(const JsonFields& fields, const SavedKernel& saved,
                                     const VirtualDevice& device) {
  LoadedProduct loaded;
  Product& p = loaded.product;
  size_t next = 0;
  const auto operand = [&](const char* name, std::shared_ptr<const void>& data,
                           Operand& into) -> Status {
    const JsonFields own(*TRY(fields.object(name)));
    into.param = static_cast<int>(TRY(own.integer("param", -1, 1 << 20)));
    into.shape = TRY(integers_from(own, "shape", 0, most_bytes(), kMostDims));
    const size_t bytes = TRY(bytes_from(into.shape, sizeof(float)));
    if (!into.is_constant())
      return saved.buffers.input_holds(static_cast<size_t>(into.param), bytes, device);
    if (next >= saved.constants.size() || saved.constants[next].bytes != bytes)
      return bad_model("a constant operand of {} bytes is not there", bytes);
    data = saved.constants[next++].data;
    return {};
  };
  TRY(operand("a", loaded.constants[0], p.a));
  TRY(operand("b", loaded.constants[1], p.b));
  if (fields.has("addend")) TRY(operand("addend", loaded.constants[2], p.addend.emplace()));
  p.alpha = static_cast<float>(TRY(fields.number("alpha", {-1e38, 1e38})));
  p.result = TRY(integers_from(fields, "result", 0, most_bytes(), kMostDims));
  TRY(saved.buffers.output_holds(0, TRY(bytes_from(p.result, sizeof(float))), device));
  p.m = static_cast<int>(TRY(fields.integer("m", 0, kMostExtent)));
  p.n = static_cast<int>(TRY(fields.integer("n", 0, kMostExtent)));
  p.k = static_cast<int>(TRY(fields.integer("k", 0, kMostExtent)));
  p.transpose_a = TRY(fields.flag("transpose_a"));
  p.transpose_b = TRY(fields.flag("transpose_b"));
  p.a_offsets = TRY(integers_from(fields, "a_offsets", 0, most_bytes(), kMostProducts));
  p.b_offsets = TRY(integers_from(fields, "b_offsets", 0, most_bytes(), kMostProducts));
  TRY(check_extents(p));
  return loaded;
}

}  // namespace collage::gemm
