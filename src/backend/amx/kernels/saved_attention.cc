#include "backend/amx/kernels/saved_attention.h"

#include <algorithm>
#include <cstdlib>

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

/// Whether matrices of so many rows and columns lie within so many bytes.
bool lie_within(const Matrices& m, int64_t rows, int64_t columns, size_t bytes) {
  const auto elements = static_cast<int64_t>(bytes / sizeof(float));
  if (rows > 1 && std::abs(m.row) > elements / (rows - 1)) return false;
  const int64_t last = (rows - 1) * m.row;
  return std::all_of(m.heads.begin(), m.heads.end(), [&](int64_t head) {
    return head + std::min<int64_t>(last, 0) >= 0 &&
           head + std::max<int64_t>(last, 0) + columns <= elements;
  });
}

/// That all matrices lie within their buffers, or the constant that the mask may be.
Status check_buffers(const Attention& a, bool constant_mask, const SavedKernel& saved) {
  const auto input = [&](const Matrices& m, int64_t rows, int64_t columns) -> Status {
    TRY(saved.buffers.input_holds(m.param, 0));
    if (lie_within(m, rows, columns, saved.buffers.inputs[m.param])) return {};
    return bad_model("amx: attention that leaves its input {}", m.param);
  };
  TRY(input(a.q, a.queries, a.width));
  TRY(input(a.k, a.keys, a.width));
  TRY(input(a.v, a.keys, a.value_width));
  TRY(saved.buffers.output_holds(0, 0));
  if (!lie_within(a.out, a.queries, a.value_width, saved.buffers.outputs[0]))
    return bad_model("amx: attention that leaves its result");
  if (!constant_mask) return a.mask ? input(*a.mask, a.queries, a.keys) : Status();
  if (saved.constants.size() != 1) return bad_model("amx: attention without its mask");
  if (a.mask && lie_within(*a.mask, a.queries, a.keys, saved.constants[0].bytes)) return {};
  return bad_model("amx: a constant mask of {} bytes", saved.constants[0].bytes);
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
  const bool constant_mask = TRY(fields.flag("constant_mask"));
  TRY(check_buffers(a, constant_mask, saved));
  if (!constant_mask) return read;
  const SharedBytes& mask = saved.constants[0];
  const auto elements = static_cast<int64_t>(mask.bytes / sizeof(float));
  auto owner = std::const_pointer_cast<void>(mask.data);
  a.constant_mask = Tensor::share(DType::kFloat32, {elements}, owner, owner.get());
  return read;
}

}  // namespace collage::amx
