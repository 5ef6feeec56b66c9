#include "backend/onednn/kernels/saved_desc.h"

#include <algorithm>

#include "base/integers.h"
#include "runtime/saved_fields.h"

namespace collage::onednn {

using nlohmann::json;

namespace {

constexpr int kFirstTag = dnnl_format_tag_any + 1, kLastTag = dnnl_format_tag_last - 1;

bool is_empty(const Desc& desc) { return desc.get_ndims() == 0; }

// A descriptor of these dimensions with a tag, or an empty one.
Desc tagged(const Dims& dims, dnnl_data_type_t type, int tag) {
  dnnl_memory_desc_t made = nullptr;
  if (dnnl_memory_desc_create_with_tag(&made, static_cast<int>(dims.size()), dims.data(), type,
                                       static_cast<dnnl_format_tag_t>(tag)) != dnnl_success)
    return Desc();
  return Desc(made);
}

// The offsets along each dimension that make up one offset in elements. Of dimensions that move
// equally far all but one are 1.
Dims offsets_of(const Dims& dims, const Dims& strides, int64_t elements) {
  std::vector<size_t> order(dims.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return strides[a] != strides[b] ? strides[a] > strides[b] : dims[a] > dims[b];
  });
  Dims offsets(dims.size(), 0);
  for (size_t d : order) {
    if (strides[d] == 0) continue;
    offsets[d] = elements / strides[d];
    elements %= strides[d];
  }
  return offsets;
}

// Of each dimension, the elements of its blocks.
Dims blocks_of(const Desc& desc) {
  Dims blocks(static_cast<size_t>(desc.get_ndims()), 1);
  const Dims sizes = desc.get_inner_blks(), dims = desc.get_inner_idxs();
  for (size_t i = 0; i < sizes.size(); ++i) blocks[static_cast<size_t>(dims[i])] *= sizes[i];
  return blocks;
}

// A tensor in a blocked layout that a view may be a part of, and where the part begins. What the
// strides do not say, how far the outermost dimension goes on, does not matter.
struct Whole {
  Dims dims, offsets;
};
Whole whole_of(const Desc& view) {
  const Dims dims = view.get_dims(), strides = view.get_strides(), blocks = blocks_of(view);
  std::vector<size_t> order(dims.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return strides[a] != strides[b] ? strides[a] > strides[b]
                                    : dims[a] / blocks[a] > dims[b] / blocks[b];
  });
  Whole whole{Dims(dims.size()), Dims(dims.size())};
  int64_t rest = view.get_submemory_offset(), around = 0;  // the next stride outwards
  for (size_t d : order) {
    const int64_t stride = std::max<int64_t>(strides[d], 1);
    whole.offsets[d] = rest / stride * blocks[d];
    rest %= stride;
    const int64_t end = whole.offsets[d] + dims[d], reached = ceil_div(end, blocks[d]);
    const int64_t extent = around == 0 ? reached : around / stride;
    whole.dims[d] = extent == reached ? end : extent * blocks[d];
    around = stride;
  }
  return whole;
}

Desc part_of(const Desc& whole, const Dims& dims, const Dims& offsets) {
  dnnl_memory_desc_t made = nullptr;
  if (is_empty(whole) || dnnl_memory_desc_create_submemory(&made, whole.get(), dims.data(),
                                                           offsets.data()) != dnnl_success)
    return Desc();
  return Desc(made);
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

Result<Dims> dims_from(const JsonFields& fields, const char* name) {
  return integers_from(fields, name, 0, most_bytes(), DNNL_MAX_NDIMS);
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
      // Strides that oneDNN takes for overlapping are not the end: there are tags.
      const Result<Desc> again = guarded("strides", [&] { return load_desc(saved); });
      if (again.ok() && *again == desc) return saved;
      saved.erase("strides");
      saved.erase("offsets");
    }
    for (int tag = kFirstTag; tag <= kLastTag; ++tag) {
      const Desc made = tagged(dims, type, tag);
      // Descriptors are equal whatever the strides of dimensions of 1, which implementations look
      // at all the same.
      if (!(made == desc) || made.get_strides() != desc.get_strides()) continue;
      saved["tag"] = tag;
      return saved;
    }
    const Whole whole = whole_of(desc);
    for (int tag = kFirstTag; tag <= kLastTag && desc.get_inner_nblks() > 0; ++tag) {
      if (!(part_of(tagged(whole.dims, type, tag), dims, whole.offsets) == desc)) continue;
      saved["tag"] = tag;
      saved["whole"] = whole.dims;
      saved["offsets"] = whole.offsets;
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
  const Dims dims = TRY(dims_from(fields, "dims"));
  const auto type = static_cast<Type>(TRY(fields.integer("type", 0, 64)));
  TRY(bytes_from(dims, 1));
  if (fields.has("any")) return Desc(dims, type, Tag::any);
  if (fields.has("tag")) {
    const auto tag = static_cast<int>(TRY(fields.integer("tag", kFirstTag, kLastTag)));
    const auto made_of = static_cast<dnnl_data_type_t>(type);
    Desc made;
    if (fields.has("whole")) {
      const Dims whole = TRY(dims_from(fields, "whole")),
                 offsets = TRY(dims_from(fields, "offsets"));
      TRY(bytes_from(whole, 1));
      TRY(same_rank(dims, whole));
      TRY(same_rank(dims, offsets));
      made = part_of(tagged(whole, made_of, tag), dims, offsets);
    } else {
      made = tagged(dims, made_of, tag);
    }
    if (is_empty(made)) return bad_model("onednn: a tag that does not fit its dimensions");
    return made;
  }
  const Dims strides = TRY(dims_from(fields, "strides"));
  TRY(same_rank(dims, strides));
  const Dims offsets =
      fields.has("offsets") ? TRY(dims_from(fields, "offsets")) : Dims(dims.size());
  TRY(same_rank(dims, offsets));
  for (size_t d = 0; d < dims.size(); ++d)
    if (strides[d] > 0 && dims[d] + offsets[d] > most_bytes() / strides[d])
      return bad_model("onednn: strides that leave this machine's memory");
  if (!fields.has("offsets")) return Desc(dims, type, strides);
  return Desc(sum(dims, offsets), type, strides).submemory_desc(dims, offsets);
}

size_t reach_of(const Desc& desc) {
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return desc.get_size();
  const Dims padded = desc.get_padded_dims(), strides = desc.get_strides(),
             blocks = blocks_of(desc);
  int64_t inner = 1, elements = desc.get_submemory_offset();
  for (size_t d = 0; d < padded.size(); ++d) {
    if (padded[d] == 0) return 0;
    elements += (ceil_div(padded[d], blocks[d]) - 1) * strides[d];
    inner *= blocks[d];
  }
  return static_cast<size_t>(elements + inner) * dnnl::memory::data_type_size(desc.get_data_type());
}

Status check_chosen(const json& saved, const Desc& chosen) {
  if (!saved.is_object() || !saved.contains("any") || saved["any"] == facts(chosen)) return {};
  return bad_model("onednn: weights are packed in another way on this processor");
}

}  // namespace collage::onednn
