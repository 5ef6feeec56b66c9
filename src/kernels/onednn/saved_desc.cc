#include "kernels/onednn/saved_desc.h"

#include <algorithm>

#include "runtime/saved_fields.h"

namespace collage::onednn {

using nlohmann::json;

namespace {

constexpr int64_t kMost = int64_t{1} << 46;

bool is_empty(const Desc& desc) { return desc.get_ndims() == 0; }

// A descriptor of these dimensions with a tag, or an empty one.
Desc tagged(const Dims& dims, dnnl_data_type_t type, int tag) {
  dnnl_memory_desc_t made = nullptr;
  if (dnnl_memory_desc_create_with_tag(&made, static_cast<int>(dims.size()), dims.data(), type,
                                       static_cast<dnnl_format_tag_t>(tag)) != dnnl_success)
    return Desc();
  return Desc(made);
}

// The offsets along each dimension that make up one offset in elements.
Dims offsets_of(Dims dims, const Dims& strides, int64_t elements) {
  std::vector<size_t> order(dims.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  Dims offsets(dims.size(), 0);
  for (size_t d : order) {
    if (strides[d] == 0) continue;
    offsets[d] = elements / strides[d];
    elements %= strides[d];
  }
  return offsets;
}

Dims sum(const Dims& a, const Dims& b) {
  Dims result = a;
  for (size_t i = 0; i < a.size(); ++i) result[i] += b[i];
  return result;
}

json base_of(const Desc& desc) {
  return {{"dims", desc.get_dims()}, {"type", static_cast<int>(desc.get_data_type())}};
}

// What is known of any descriptor, whatever its form.
json facts(const Desc& desc) {
  json result = {{"bytes", desc.get_size()}};
  if (desc.get_format_kind() == dnnl::memory::format_kind::blocked) {
    result["blocks"] = desc.get_inner_blks();
    result["blocked"] = desc.get_inner_idxs();
    result["strides"] = desc.get_strides();
  }
  return result;
}

Result<Dims> dims_from(const JsonFields& fields, const char* name, int64_t low) {
  return integers_from(fields, name, low, kMost, DNNL_MAX_NDIMS);
}

Status same_rank(const Dims& a, const Dims& b) {
  if (a.size() == b.size() && !a.empty()) return {};
  return bad_model("onednn: a descriptor of {} dimensions and {}", a.size(), b.size());
}

}  // namespace

Result<json> save_desc(const Desc& desc, bool or_any) {
  if (is_empty(desc)) return json();
  json saved = base_of(desc);
  const Dims dims = desc.get_dims();
  const auto type = static_cast<dnnl_data_type_t>(desc.get_data_type());
  if (desc.get_format_kind() == dnnl::memory::format_kind::blocked) {
    if (desc.get_inner_nblks() == 0) {
      const Dims strides = desc.get_strides();
      saved["strides"] = strides;
      const int64_t offset = desc.get_submemory_offset();
      if (offset != 0) saved["offsets"] = offsets_of(dims, strides, offset);
      const Result<Desc> again = load_desc(saved);
      if (again.ok() && *again == desc) return saved;
      saved.erase("strides");
      saved.erase("offsets");
    }
    for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
      if (!(tagged(dims, type, tag) == desc)) continue;
      saved["tag"] = tag;
      return saved;
    }
  }
  if (!or_any) return unsupported("onednn: a view that no description makes");
  saved["any"] = facts(desc);
  return saved;
}

Result<Desc> load_desc(const json& saved) {
  if (saved.is_null()) return Desc();
  const JsonFields fields(saved);
  const Dims dims = TRY(dims_from(fields, "dims", 0));
  const auto type = static_cast<Type>(TRY(fields.integer("type", 0, 64)));
  if (fields.has("any")) return Desc(dims, type, Tag::any);
  if (fields.has("tag")) {
    Desc made = tagged(dims, static_cast<dnnl_data_type_t>(type),
                       static_cast<int>(TRY(fields.integer("tag", dnnl_format_tag_any + 1,
                                                           dnnl_format_tag_last - 1))));
    if (is_empty(made)) return bad_model("onednn: a tag that does not fit its dimensions");
    return made;
  }
  const Dims strides = TRY(dims_from(fields, "strides", 0));
  TRY(same_rank(dims, strides));
  if (!fields.has("offsets")) return Desc(dims, type, strides);
  const Dims offsets = TRY(dims_from(fields, "offsets", 0));
  TRY(same_rank(dims, offsets));
  return Desc(sum(dims, offsets), type, strides).submemory_desc(dims, offsets);
}

Status check_chosen(const json& saved, const Desc& chosen) {
  if (!saved.is_object() || !saved.contains("any") || saved["any"] == facts(chosen)) return {};
  return bad_model("onednn: weights are packed in another way on this processor");
}

}  // namespace collage::onednn
