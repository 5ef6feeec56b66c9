// Memory descriptors as JSON. oneDNN reads none back, so each is written as what makes an equal
// one: strides, a format tag, or a part of a whole that either makes. A descriptor that nothing of
// that makes (weights in a form of an implementation's own) is written as "any", with the
// conditions on the one that the implementation chooses when the program is loaded.
#pragma once

#include <nlohmann/json.hpp>

#include "backend/onednn/kernels/library.h"

namespace collage::onednn {

// Returns null for an empty descriptor. If nothing makes it, returns `{"any": …}` with `or_any`,
// else kUnsupported.
Result<nlohmann::json> save_desc(const Desc& desc, bool or_any);
// May throw what oneDNN throws.
Result<Desc> load_desc(const nlohmann::json& saved);
// Returns the bytes from a buffer's beginning to the end of what is accessed as `desc`. oneDNN's
// own size is 0 for parts that begin further in, and counts strides beyond the last element. What
// an implementation keeps behind weights is left out.
size_t reach_of(const Desc& desc);
// kBadModel unless `saved` describes `chosen`.
Status check_chosen(const nlohmann::json& saved, const Desc& chosen);

}  // namespace collage::onednn
