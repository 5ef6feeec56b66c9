#include "kernels/amx/saved_attention.h"

#include <algorithm>

#include "runtime/saved_fields.h"

namespace collage::amx {
namespace {

using nlohmann::json;

// What sums and products of these numbers stay in 64 bits for.
constexpr int64_t kMostRows = 1 << 24, kMostElements = int64_t{1} << 46;
constexpr int64_t kMostWork = int64_t{1} << 50;
constexpr size_t kMostHeads = 1 << 20;

json save_matrices(const Matrices& m) {
  return {{"input", m.param}, {"heads", m.heads}, {"row", m.row}};
}

Result<Matrices> matrices_from(const JsonFields& fields, const char* name) {
  const JsonFields own(*TRY(fields.object(name)));
  Matrices m;
  m.param = static_cast<size_t>(TRY(own.integer("input", 0, 1 << 20)));
  m.heads = TRY(integers_from(own, "heads", -kMostElements, kMostElements, kMostHeads));
  m.row = TRY(own.integer("row", -kMostElements, kMostElements));
  return m;
}

/// Whether all that is read of the mask lies within so many elements.
bool lies_within(const Matrices& mask, const Attention& a, int64_t elements) {
  if (mask.row > kMostRows || mask.row < -kMostRows) return false;
  const int64_t last = (a.queries - 1) * mask.row;
  return std::all_of(mask.heads.begin(), mask.heads.end(), [&](int64_t head) {
    return head + std::min<int64_t>(last, 0) >= 0 &&
           head + std::max<int64_t>(last, 0) + a.keys <= elements;
  });
}

}  // namespace

SavedKernel save_attention(const Attention& a, int parts) {
  SavedKernel saved;
  saved.loader = kAttentionLoader;
  json description = {{"parts", parts},
                      {"queries", a.queries},
                      {"keys", a.keys},
                      {"width", a.width},
                      {"value_width", a.value_width},
                      {"scale", float_bits({&a.scale, 1})},
                      {"causal", a.causal},
                      {"constant_mask", a.constant_mask.raw() != nullptr},
                      {"q", save_matrices(a.q)},
                      {"k", save_matrices(a.k)},
                      {"v", save_matrices(a.v)},
                      {"out", save_matrices(a.out)}};
  if (a.mask) description["mask"] = save_matrices(*a.mask);
  if (a.constant_mask.raw() != nullptr) {
    auto holder = std::make_shared<Tensor>(a.constant_mask);
    saved.constants.push_back({{holder, holder->raw()}, a.constant_mask.bytes()});
  }
  saved.description = description.dump();
  return saved;
}

Result<SavedAttention> read_saved_attention(const SavedKernel& saved) {
  const json description = TRY(description_object(saved.description));
  const JsonFields fields(description);
  SavedAttention read;
  read.parts = static_cast<int>(TRY(fields.integer("parts", 1, 3)));
  Attention& a = read.attention;
  a.queries = TRY(fields.integer("queries", 1, kMostRows));
  a.keys = TRY(fields.integer("keys", 1, kMostRows));
  a.width = TRY(fields.integer("width", 1, kMostRows));
  a.value_width = TRY(fields.integer("value_width", 1, kMostRows));
  const std::vector<float> scale = TRY(floats_from(fields, "scale", 1));
  if (scale.size() != 1) return bad_model("amx: attention without a scale");
  a.scale = scale[0];
  a.causal = TRY(fields.flag("causal"));
  a.q = TRY(matrices_from(fields, "q"));
  a.k = TRY(matrices_from(fields, "k"));
  a.v = TRY(matrices_from(fields, "v"));
  a.out = TRY(matrices_from(fields, "out"));
  if (fields.has("mask")) a.mask = TRY(matrices_from(fields, "mask"));
  const size_t heads = a.q.heads.size();
  if (heads == 0 || a.k.heads.size() != heads || a.v.heads.size() != heads ||
      a.out.heads.size() != heads || (a.mask && a.mask->heads.size() != heads))
    return bad_model("amx: attention whose matrices have {} heads and other numbers", heads);
  if (TRY(checked_num_elements({a.queries, a.keys, static_cast<int64_t>(heads)})) > kMostWork)
    return bad_model("amx: attention of {} queries to {} keys", a.queries, a.keys);
  if (!TRY(fields.flag("constant_mask"))) return read;
  if (saved.constants.size() != 1) return bad_model("amx: attention without its mask");
  const SharedBytes& mask = saved.constants[0];
  const auto elements = static_cast<int64_t>(mask.bytes / sizeof(float));
  if (!a.mask || !lies_within(*a.mask, a, elements))
    return bad_model("amx: a constant mask of {} bytes", mask.bytes);
  auto owner = std::const_pointer_cast<void>(mask.data);
  a.constant_mask = Tensor::share(DType::kFloat32, {elements}, owner, owner.get());
  return read;
}

}  // namespace collage::amx
