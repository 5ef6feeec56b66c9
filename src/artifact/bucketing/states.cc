#include "artifact/bucketing/states.h"

#include <optional>
#include <utility>

namespace collage {

namespace {

// Of what is kept, by sizes that are known from the inputs.
Result<Shape> kept_shape(const StateInfo& state, const DimSizes& sizes) {
  Shape shape;
  for (const std::string& dim : state.input.dims) {
    const std::optional<DimSum> sum = DimSum::parse(dim);
    if (!sum || sum->terms.size() != 1 ||
        (!sum->terms[0].name.empty() && sizes.count(sum->terms[0].name) == 0))
      return bad_model("dimension '{}' of state '{}' is not known from the inputs", dim,
                       state.input.name);
    shape.push_back(sum->terms[0].name.empty() ? sum->terms[0].number
                                               : sizes.at(sum->terms[0].name));
  }
  return shape;
}

Result<Tensor> filled_with_padding(const StateInfo& state, PaddedShape shape, double value) {
  for (auto& parts : shape.dims)
    for (PaddedShape::Part& part : parts) part.size = 0;
  return pad_tensor(Tensor::empty(state.input.dtype, shape.shape()), shape, value);
}

// What a run adds must differ from the buffer in its length alone.
Status check_part(const StateInfo& state, const Tensor& part, const Tensor& buffer) {
  Shape longer = part.shape();
  if (longer.size() == buffer.shape().size()) longer[state.axis] = buffer.shape()[state.axis];
  if (part.dtype() == buffer.dtype() && longer == buffer.shape()) return {};
  return bad_model("state '{}' is {} {}, a run adds {} {}", state.input.name,
                   dtype_name(buffer.dtype()), shape_to_string(buffer.shape()),
                   dtype_name(part.dtype()), shape_to_string(part.shape()));
}

}  // namespace

States::States(std::vector<StateInfo> infos, std::map<std::string, double> padding)
    : infos_(std::move(infos)), buffers_(infos_.size()), padding_(std::move(padding)) {
  for (const StateInfo& info : infos_) sizes_[info.dim] = 0;
}

Status States::add_to(TensorsByName& tensors, const DimSizes& sizes, const DimSizes& padded) {
  for (size_t k = 0; k < infos_.size(); ++k) {
    const StateInfo& state = infos_[k];
    Tensor& buffer = buffers_[k];
    const PaddedShape shape =
        PaddedShape::of(state.input, TRY(kept_shape(state, sizes)), sizes, padded);
    const Shape wanted = shape.padded();
    if (!buffer.defined() || buffer.shape() != wanted) {
      const auto value = padding_.find(state.input.name);
      Tensor grown =
          TRY(filled_with_padding(state, shape, value == padding_.end() ? 0 : value->second));
      if (buffer.defined()) {
        for (size_t i = 0; i < wanted.size(); ++i)
          if (i != state.axis && wanted[i] != buffer.shape()[i])
            return bad_model("state '{}' is kept in shape {}, this run needs {}; reset it first",
                             state.input.name, shape_to_string(buffer.shape()),
                             shape_to_string(wanted));
        if (wanted[state.axis] < buffer.shape()[state.axis])
          return internal_error("state '{}' would shrink", state.input.name);
        write_part(buffer, grown, state.axis, 0);
      }
      buffer = std::move(grown);
    }
    tensors[state.input.name] = buffer;
  }
  return {};
}

Status States::append(const std::vector<Tensor>& added, const DimSizes& sizes,
                      const DimSizes& padded) {
  DimSizes grown = sizes_;
  for (size_t i = 0; i < infos_.size(); ++i) {
    const StateInfo& state = infos_[i];
    Tensor& buffer = buffers_[i];
    const PaddedShape shape = PaddedShape::of(state.added, added[i].shape(), sizes, padded);
    const Tensor part = shape.is_padded() ? TRY(cut_tensor(added[i], shape)) : added[i];
    TRY(check_part(state, part, buffer));
    const int64_t kept = sizes_.at(state.dim), more = part.shape()[state.axis];
    // Room for all of it, in the next bucket where this one is full: made when the next run knows
    // its size. Until then the buffer is as large as it must be.
    if (kept + more > buffer.shape()[state.axis]) {
      Shape larger = buffer.shape();
      larger[state.axis] = kept + more;
      Tensor whole = TRY(Tensor::allocate(buffer.dtype(), larger));
      write_part(buffer, whole, state.axis, 0);
      buffer = std::move(whole);
    }
    write_part(part, buffer, state.axis, kept);
    grown[state.dim] = kept + more;
  }
  sizes_ = std::move(grown);
  return {};
}

void States::reset() {
  for (Tensor& buffer : buffers_) buffer = Tensor();
  for (auto& [name, size] : sizes_) size = 0;
}

}  // namespace collage
