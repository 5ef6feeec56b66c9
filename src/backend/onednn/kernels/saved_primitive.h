// Primitives as JSON: their kind, descriptors, numbers, post operations, masks of scales and zero
// points, and the name of the implementation, since another would round differently.
#pragma once

#include <nlohmann/json.hpp>

#include "backend/onednn/kernels/library.h"

namespace collage::onednn {

// Makes the primitive again to check that the text does so. Within a TeamScope.
Result<nlohmann::json> save_primitive(const dnnl::primitive& primitive, const Masks& masks = {});
// May throw what oneDNN throws. Within a TeamScope of as many threads.
Result<dnnl::primitive> load_primitive(const nlohmann::json& saved);

// Returns the masks in the output of save_primitive.
Result<Masks> load_masks(const nlohmann::json& saved);

// Returns the descriptor of an argument of the primitive.
Desc argument_desc(const dnnl::primitive& primitive, int arg);

}  // namespace collage::onednn
