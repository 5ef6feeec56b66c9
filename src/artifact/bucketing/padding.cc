#include "artifact/bucketing/padding.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <numeric>

#include "ops/half.h"
#include "ops/strided.h"
#include "runtime/dispatch.h"

namespace collage {

namespace {

constexpr int64_t kMostExtent = int64_t{1} << 40;

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

bool is_name(const std::string& text) {
  return !text.empty() && text != "?" && text.find_first_of("+-*/() ") == std::string::npos;
}

// Calls `copy(offset in the tensor, offset in the padded one, bytes)` for each run of elements.
void for_runs(const PaddedShape& shape, size_t element,
              const std::function<void(size_t, size_t, size_t)>& copy) {
  Ints own = dense_strides(shape.shape()), padded = dense_strides(shape.padded());
  const auto in_bytes = [&](Ints& strides) {
    for (int64_t& stride : strides) stride *= static_cast<int64_t>(element);
  };
  in_bytes(own);
  in_bytes(padded);
  const size_t rank = shape.dims.size();
  std::function<void(size_t, size_t, size_t)> walk = [&](size_t dim, size_t from, size_t to) {
    if (dim == rank) {
      copy(from, to, element);
      return;
    }
    for (const PaddedShape::Part& part : shape.dims[dim]) {
      if (dim + 1 == rank) {
        copy(from, to, static_cast<size_t>(part.size) * element);
      } else {
        for (int64_t i = 0; i < part.size; ++i)
          walk(dim + 1, from + static_cast<size_t>(i * own[dim]),
               to + static_cast<size_t>(i * padded[dim]));
      }
      from += static_cast<size_t>(part.size * own[dim]);
      to += static_cast<size_t>(part.padded * padded[dim]);
    }
  };
  walk(0, 0, 0);
}

void fill(Tensor& tensor, double value) {
  if (is_half(tensor.dtype())) {
    std::fill_n(static_cast<uint16_t*>(tensor.raw()), tensor.size(),
                float_to_half(static_cast<float>(value), tensor.dtype()));
    return;
  }
  dispatch_any(tensor.dtype(), [&]<typename T>(Tag<T>) {
    std::fill_n(static_cast<T*>(tensor.raw()), tensor.size(), static_cast<T>(value));
  });
}

Shape total(const PaddedShape& shape, int64_t PaddedShape::Part::*extent) {
  Shape result;
  for (const auto& parts : shape.dims)
    result.push_back(std::accumulate(
        parts.begin(), parts.end(), int64_t{0},
        [&](int64_t sum, const PaddedShape::Part& part) { return sum + part.*extent; }));
  return result;
}

// What is left of `extent` for the one name of a sum that has no size yet.
struct Unknown {
  size_t count = 0;
  std::string name;
  int64_t rest;
};

Unknown unknown_part(const DimSum& sum, int64_t extent, const DimSizes& sizes) {
  Unknown unknown{0, "", extent};
  for (const DimSum::Term& term : sum.terms) {
    auto it = sizes.find(term.name);
    if (term.name.empty()) {
      unknown.rest -= term.number;
    } else if (it != sizes.end()) {
      unknown.rest -= it->second;
    } else {
      ++unknown.count;
      unknown.name = term.name;
    }
  }
  return unknown;
}

}  // namespace

std::optional<DimSum> DimSum::parse(const std::string& text) {
  DimSum sum;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    const std::string part = trimmed(text.substr(begin, end - begin));
    Term term;
    const auto [rest, failure] =
        std::from_chars(part.data(), part.data() + part.size(), term.number);
    const bool number = failure == std::errc() && rest == part.data() + part.size();
    if (number && (term.number < 0 || term.number > kMostExtent)) return std::nullopt;
    if (!number && !is_name(part)) return std::nullopt;
    if (!number) term.name = part;
    sum.terms.push_back(std::move(term));
    begin = end + 1;
  }
  return sum;
}

TensorInfo open_tensor(std::string name, std::vector<std::string> dims, DType dtype,
                       bool has_shape) {
  TensorInfo info{std::move(name), {}, dtype, std::move(dims), has_shape};
  for (const std::string& dim : info.dims) {
    int64_t size = 0;
    const char* const last = dim.data() + dim.size();
    const auto [end, failure] = std::from_chars(dim.data(), last, size);
    info.shape.push_back(failure == std::errc() && end == last ? size : -1);
  }
  return info;
}

Result<DimSizes> sizes_of(const std::vector<TensorInfo>& declared,
                          const std::vector<Shape>& shapes, DimSizes sizes) {
  // Sums last: what single names are tells the one unknown part of a sum.
  bool learned = true;
  for (bool last = false; learned || !last;) {
    last = !learned;
    learned = false;
    for (size_t i = 0; i < declared.size(); ++i) {
      if (!declared[i].has_shape) continue;
      if (shapes[i].size() != declared[i].dims.size())
        return bad_model("input '{}' has rank {}, not {}", declared[i].name, shapes[i].size(),
                         declared[i].dims.size());
      for (size_t k = 0; k < shapes[i].size(); ++k) {
        const std::optional<DimSum> sum = DimSum::parse(declared[i].dims[k]);
        if (!sum) continue;
        const Unknown unknown = unknown_part(*sum, shapes[i][k], sizes);
        if (unknown.count == 1 && unknown.rest >= 0) {
          sizes[unknown.name] = unknown.rest;
          learned = true;
        } else if (unknown.count == 0 && unknown.rest != 0) {
          return bad_model("input '{}' has shape {}, where dimension {} is not '{}'",
                           declared[i].name, shape_to_string(shapes[i]), k, declared[i].dims[k]);
        }
      }
    }
  }
  return sizes;
}

Result<DimSizes> bucket_sizes(const DimSizes& sizes,
                              const std::map<std::string, std::vector<int64_t>>& buckets) {
  DimSizes result = sizes;
  for (const auto& [name, choices] : buckets) {
    auto it = result.find(name);
    if (it == result.end()) continue;
    std::optional<int64_t> best;
    for (int64_t choice : choices)
      if (choice >= it->second && (!best || choice < *best)) best = choice;
    if (!best) return bad_model("dimension '{}' is {}, larger than every bucket", name, it->second);
    it->second = *best;
  }
  return result;
}

PaddedShape PaddedShape::of(const TensorInfo& declared, const Shape& shape,
                            const DimSizes& sizes, const DimSizes& padded) {
  PaddedShape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    std::vector<Part> parts;
    const std::optional<DimSum> sum =
        i < declared.dims.size() ? DimSum::parse(declared.dims[i]) : std::nullopt;
    bool known = sum.has_value();
    for (size_t k = 0; known && k < sum->terms.size(); ++k) {
      const DimSum::Term& term = sum->terms[k];
      known = term.name.empty() || sizes.count(term.name) != 0;
      if (known && term.name.empty())
        parts.push_back({term.number, term.number});
      else if (known)
        parts.push_back({sizes.at(term.name), padded.at(term.name)});
    }
    if (!known) parts = {{shape[i], shape[i]}};
    result.dims.push_back(std::move(parts));
  }
  return result;
}

Shape PaddedShape::shape() const { return total(*this, &Part::size); }
Shape PaddedShape::padded() const { return total(*this, &Part::padded); }

Result<Tensor> pad_tensor(const Tensor& tensor, const PaddedShape& shape, double value) {
  Tensor result = TRY(Tensor::allocate(tensor.dtype(), shape.padded()));
  fill(result, value);
  auto* to = static_cast<char*>(result.raw());
  const auto* from = static_cast<const char*>(tensor.raw());
  for_runs(shape, dtype_size(tensor.dtype()), [&](size_t own, size_t padded, size_t bytes) {
    if (bytes != 0) std::memcpy(to + padded, from + own, bytes);
  });
  return result;
}

Result<Tensor> cut_tensor(const Tensor& tensor, const PaddedShape& shape) {
  if (tensor.shape() != shape.padded())
    return bad_model("a result has shape {} where its dimensions say {}",
                     shape_to_string(tensor.shape()), shape_to_string(shape.padded()));
  Tensor result = TRY(Tensor::allocate(tensor.dtype(), shape.shape()));
  auto* to = static_cast<char*>(result.raw());
  const auto* from = static_cast<const char*>(tensor.raw());
  for_runs(shape, dtype_size(tensor.dtype()), [&](size_t own, size_t padded, size_t bytes) {
    if (bytes != 0) std::memcpy(to + own, from + padded, bytes);
  });
  return result;
}

void write_part(const Tensor& part, Tensor& whole, size_t axis, int64_t offset) {
  const Ints strides = dense_strides(whole.shape());
  copy_strided(part.shape(), dtype_size(part.dtype()), {part.raw(), 0, dense_strides(part.shape())},
               {whole.raw(), offset * strides[axis], strides});
}

}  // namespace collage
