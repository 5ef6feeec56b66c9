#include "backend/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "base/integers.h"
#include "ops/cases.h"
#include "ops/half.h"
#include "ops/interpreter.h"
#include "ops/random_inputs.h"
#include "ops/registry.h"
#include "runtime/thread_team.h"
#include "saved_layouts.h"

namespace collage::testing {

namespace {

// A buffer, aligned as kernels expect, with 64 canary bytes or more before it and less than 64
// behind it; then a page that no access survives.
class Guarded {
 public:
  explicit Guarded(size_t bytes)
      : bytes_(bytes), size_(round_up(round_up(bytes, kLine) + kLine, page_size())) {
    void* pages = ::mmap(nullptr, size_ + page_size(), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED ||
        ::mprotect(static_cast<char*>(pages) + size_, page_size(), PROT_NONE) != 0)
      std::abort();
    pages_ = {static_cast<char*>(pages), Unmap{size_ + page_size()}};
    std::memset(pages_.get(), kCanary, size_);
  }
  char* data() { return pages_.get() + offset(); }
  bool intact() const {
    for (size_t i = 0; i < size_; ++i)
      if ((i < offset() || i >= offset() + bytes_) && pages_.get()[i] != kCanary) return false;
    return true;
  }

 private:
  struct Unmap {
    size_t size;
    void operator()(char* pages) const { ::munmap(pages, size); }
  };
  static constexpr char kCanary = 0x5a;
  static constexpr size_t kLine = 64;
  static size_t page_size() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }
  size_t offset() const { return size_ - round_up(bytes_, kLine); }

  size_t bytes_, size_;
  std::unique_ptr<char, Unmap> pages_;
};

// Where each element lies in the layout, in row-major order. Most tests ask for the same few again
// and again, and a layout takes its time to tell.
const std::vector<int64_t>& offsets_of(const Shape& shape, const Layout& layout) {
  static std::map<std::string, std::vector<int64_t>> known;
  const std::string key = layout.to_string() + shape_to_string(shape);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  if (known.size() > 30) known.clear();
  std::vector<int64_t>& offsets = known[key];
  Shape index(shape.size(), 0);
  for (int64_t i = 0, n = num_elements(shape); i < n; ++i) {
    offsets.push_back(layout.offset(shape, index));
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return offsets;
}

// Calls body(plain offset, offset in the layout) for every element.
template <typename Body>
void for_each_element(const Shape& shape, const Layout& layout, Body body) {
  const std::vector<int64_t>& offsets = offsets_of(shape, layout);
  for (size_t i = 0; i < offsets.size(); ++i) body(static_cast<int64_t>(i), offsets[i]);
}

size_t bytes_of(const Shape& shape, const Encoding& encoding) {
  return encoding.layout.physical_bytes(shape, encoding.dtype);
}

void pack(const Tensor& tensor, const Encoding& encoding, char* to) {
  std::memset(to, 0, bytes_of(tensor.shape(), encoding));
  const size_t unit = dtype_size(encoding.dtype);
  for_each_element(tensor.shape(), encoding.layout, [&](int64_t plain, int64_t at) {
    char* element = to + static_cast<size_t>(at) * unit;
    if (encoding.dtype == tensor.dtype()) {
      std::memcpy(element, tensor.data<char>() + static_cast<size_t>(plain) * unit, unit);
    } else {
      const uint16_t half = float_to_half(tensor.data<float>()[plain], encoding.dtype);
      std::memcpy(element, &half, unit);
    }
  });
}

Tensor unpacked(char* from, const TensorType& type, const Encoding& encoding) {
  Tensor tensor = Tensor::empty(type.dtype, type.shape);
  const size_t unit = dtype_size(encoding.dtype);
  const Tensor stored = Tensor::borrow(
      encoding.dtype, {static_cast<int64_t>(bytes_of(type.shape, encoding) / unit)}, from);
  std::vector<bool> written(static_cast<size_t>(stored.size()), false);
  for_each_element(type.shape, encoding.layout, [&](int64_t plain, int64_t at) {
    written[static_cast<size_t>(at)] = true;
    if (encoding.dtype == type.dtype) {
      std::memcpy(tensor.data<char>() + static_cast<size_t>(plain) * unit,
                  from + static_cast<size_t>(at) * unit, unit);
    } else {
      tensor.data<float>()[plain] = static_cast<float>(stored.element_as_double(at));
    }
  });
  int64_t dirty = 0;
  for (size_t i = 0; i < written.size(); ++i)
    dirty += !written[i] && stored.element_as_double(static_cast<int64_t>(i)) != 0;
  EXPECT_EQ(dirty, 0) << "elements of the padding are not zero";
  return tensor;
}

}  // namespace

void expect_close(const Tensor& expected, const Tensor& got, const Tolerance& tolerance) {
  // Not less than this: a single result may be a small difference of large terms.
  double square = 0, largest = 1e-2;
  for (int64_t i = 0; i < expected.size(); ++i)
    if (const double v = expected.element_as_double(i); std::isfinite(v)) {
      square += v * v;
      largest = std::max(largest, std::abs(v));
    }
  const double size = std::sqrt(square / static_cast<double>(expected.size()));
  const double limit = tolerance.mean * (size + 1e-6) + tolerance.largest * largest;
  int64_t wrong = 0, first = 0;
  double worst = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double a = expected.element_as_double(i), b = got.element_as_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double error = std::abs(a - b);
    const bool close = std::isfinite(a) && error <= limit + tolerance.element * std::abs(a);
    if (!close && wrong++ == 0) first = i;
    if (!(error <= worst)) worst = error;
  }
  EXPECT_EQ(wrong, 0) << "largest error " << worst << ", allowed " << limit << "; the first is "
                      << got.element_as_double(first) << " at " << first << ", not "
                      << expected.element_as_double(first);
}

Tensor random_tensor(Shape shape, uint64_t seed, double scale, double offset) {
  Tensor tensor = Tensor::empty(DType::kFloat32, std::move(shape));
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = static_cast<float>(offset + scale * uniform(engine));
  return tensor;
}

std::vector<Tensor> random_inputs(const Function& function) {
  std::vector<Tensor> inputs;
  for (const Expr& param : function->params) {
    const TensorType& type = param->tensor_type();
    const uint64_t seed = 100 + inputs.size();
    if (type.dtype == DType::kFloat32)
      inputs.push_back(random_tensor(type.shape, seed, 2));
    else
      inputs.push_back(collage::random_tensor(
          type, seed, type.dtype == DType::kUInt8 ? ValueRange{0, 255} : ValueRange{-128, 127}));
  }
  return inputs;
}

Expr Graph::input(Shape shape, DType dtype) {
  params_.push_back(
      make_var("x" + std::to_string(params_.size()), TensorType{std::move(shape), dtype}));
  return params_.back();
}

Expr Graph::constant(Shape shape, double scale, double offset) {
  return make_constant(random_tensor(std::move(shape), ++seed_, scale, offset));
}

Expr Graph::scalar(float value) { return make_constant(Tensor::scalar<float>(value)); }

Expr Graph::call(std::string_view op, std::vector<Expr> args, Attrs attrs) {
  register_all_ops();
  Result<Expr> call = make_call(op, std::move(args), std::move(attrs));
  EXPECT_TRUE(call.ok()) << call.status().to_string();
  return call.value();
}

void PrintTo(const Conv& c, std::ostream* os) {
  *os << fmt::format("{} by {} to {}, strides {}, padding {}, dilation {}, groups {}",
                     shape_to_string(c.source), shape_to_string(c.kernel), c.outputs,
                     shape_to_string(c.strides), shape_to_string(c.padding),
                     shape_to_string(c.dilation), c.groups);
}

namespace {

Ints or_else(const Ints& given, Ints otherwise) { return given.empty() ? otherwise : given; }

Attrs attrs_of(const Conv& c) {
  const size_t rank = c.kernel.size();
  return {{"strides", or_else(c.strides, Ints(rank, 1))},
          {"padding", or_else(c.padding, Ints(2 * rank, 0))},
          {"dilation", or_else(c.dilation, Ints(rank, 1))},
          {"groups", c.groups}};
}

// Channels first, then the kernel's extents.
Expr weights_of(Graph& graph, const Conv& c, Shape shape) {
  shape.insert(shape.end(), c.kernel.begin(), c.kernel.end());
  const double terms = static_cast<double>(c.source[1] / c.groups * num_elements(c.kernel));
  return graph.constant(shape, 1 / std::sqrt(terms));
}

}  // namespace

Expr conv(Graph& graph, const Conv& c, Expr data) {
  if (data == nullptr) data = graph.input(c.source);
  return graph.call("nn.conv" + std::to_string(c.kernel.size()) + "d",
                    {data, weights_of(graph, c, {c.outputs, c.source[1] / c.groups})}, attrs_of(c));
}

void PrintTo(const TransposedConv& t, std::ostream* os) {
  PrintTo(t.conv, os);
  *os << ", output padding " << shape_to_string(t.output_padding);
}

Expr transposed_conv(Graph& graph, const TransposedConv& t) {
  const size_t rank = t.conv.kernel.size();
  Attrs attrs = attrs_of(t.conv);
  attrs.set("output_padding", or_else(t.output_padding, Ints(rank, 0)));
  return graph.call("nn.conv" + std::to_string(rank) + "d_transpose",
                    {graph.input(t.conv.source),
                     weights_of(graph, t.conv, {t.conv.source[1], t.conv.outputs / t.conv.groups})},
                    std::move(attrs));
}

std::vector<Tensor> evaluate(const Function& function, const std::vector<Tensor>& inputs) {
  Result<std::vector<Tensor>> results = interpret(function, inputs);
  EXPECT_TRUE(results.ok()) << results.status().to_string();
  return results.value();
}

BufferSizes buffers_of(const Function& function, const Variant& variant) {
  BufferSizes sizes;
  for (size_t i = 0; i < variant.inputs.size(); ++i) {
    sizes.inputs.push_back(bytes_of(function->params[i]->tensor_type().shape, variant.inputs[i]));
    sizes.input_devices.push_back(variant.inputs[i].device);
  }
  const std::vector<TensorType> types = function->result_type().leaves();
  for (size_t i = 0; i < types.size(); ++i) {
    sizes.outputs.push_back(bytes_of(types[i].shape, variant.outputs[i]));
    sizes.output_devices.push_back(variant.outputs[i].device);
  }
  return sizes;
}

std::vector<Tensor> run_guarded(Kernel& kernel, const Function& function, const Variant& variant,
                                const std::vector<Tensor>& inputs, int leftovers) {
  std::vector<Guarded> in, out;
  std::vector<std::vector<char>> given;
  std::vector<void*> in_data, out_data;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t bytes = bytes_of(inputs[i].shape(), variant.inputs[i]);
    in.emplace_back(bytes);
    pack(inputs[i], variant.inputs[i], in.back().data());
    given.emplace_back(in.back().data(), in.back().data() + bytes);
    in_data.push_back(in.back().data());
  }
  const std::vector<TensorType> types = function->result_type().leaves();
  for (size_t i = 0; i < types.size(); ++i) {
    const size_t bytes = bytes_of(types[i].shape, variant.outputs[i]);
    out.emplace_back(bytes);
    std::memset(out.back().data(), leftovers, bytes);
    out_data.push_back(out.back().data());
  }
  Guarded workspace(kernel.workspace_bytes());
  std::memset(workspace.data(), leftovers, kernel.workspace_bytes());
  const Status status = kernel.run({in_data.data(), out_data.data(), workspace.data()});
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_TRUE(workspace.intact()) << "wrote beside its workspace";
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_TRUE(in[i].intact()) << "wrote beside input " << i;
    EXPECT_EQ(std::memcmp(in[i].data(), given[i].data(), given[i].size()), 0)
        << "wrote input " << i;
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_TRUE(out[i].intact()) << "wrote beside result " << i;
    results.push_back(unpacked(out[i].data(), types[i], variant.outputs[i]));
  }
  return results;
}

namespace {

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].raw(), b[i].raw(), a[i].bytes()) != 0) return false;
  return true;
}

// As it lies in a file that is mapped: read-only to the kernel, somewhere else.
SharedBytes copied(const SharedBytes& bytes) {
  constexpr size_t kLine = 64;
  std::shared_ptr<void> memory(std::aligned_alloc(kLine, round_up(bytes.bytes, kLine) + kLine),
                               std::free);
  std::memcpy(memory.get(), bytes.data.get(), bytes.bytes);
  return {std::move(memory), bytes.bytes};
}

bool is_known_refusal(const Status& status) {
  const std::string why = status.to_string();
  return status.code() == ErrorCode::kUnsupported &&
         (why.find("its kernels cannot be saved") != std::string::npos ||
          why.find("a view that no description makes") != std::string::npos ||
          why.find("a kernel that calls another library") != std::string::npos);
}

// A twin, and the kernel saved and loaded, give the same bits; it is not loaded for buffers that
// are too small.
void check_saved(Kernel& kernel, int threads, const BufferSizes& buffers,
                 const std::vector<Tensor>& expected,
                 const std::function<std::vector<Tensor>(Kernel&)>& run) {
  Result<SavedKernel> saved = kernel.save();
  if (const auto twin = kernel.twin(); twin.ok() && *twin != nullptr) {
    EXPECT_TRUE(same_bits(run(**twin), expected)) << "a twin gives other bits";
    const Result<SavedKernel> same = (*twin)->save();
    for (size_t i = 0; saved.ok() && same.ok() && i < saved->constants.size(); ++i)
      EXPECT_EQ(saved->constants[i].data, same->constants[i].data)
          << "a twin has weights of its own";
  }
  if (!saved) {
    EXPECT_TRUE(is_known_refusal(saved.status())) << saved.status().to_string();
    return;
  }
  for (auto* list : {&saved->constants, &saved->objects})
    for (SharedBytes& bytes : *list) bytes = copied(bytes);
  const KernelLoader* loader = find_kernel_loader(saved->loader);
  ASSERT_NE(loader, nullptr) << saved->loader;
  SavedLayouts::all().expect_known_kernel(saved->loader, saved->description);
  saved->buffers = buffers;
  const Result<std::shared_ptr<Kernel>> loaded = loader->load(*saved, threads);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ((*loaded)->workspace_bytes(), kernel.workspace_bytes());
  EXPECT_TRUE(same_bits(run(**loaded), expected)) << "saved and loaded, it gives other bits";
  for (size_t& bytes : saved->buffers.outputs) bytes /= 2;
  const bool empty = saved->buffers.outputs == buffers.outputs;
  EXPECT_TRUE(empty || !loader->load(*saved, threads).ok()) << "it would leave its buffers";
  saved->buffers = buffers;
  // Compiled code does not check its arguments.
  const nlohmann::json description = nlohmann::json::parse(saved->description);
  for (size_t i = 0; description.contains("arguments") && i < description["arguments"].size(); ++i)
    for (const char* change : {"remove", "replace"}) {
      const std::string at = "/arguments/" + std::to_string(i);
      const nlohmann::json one = {{"op", change}, {"path", at}, {"value", {{"number", 1 << 30}}}};
      saved->description = description.patch(nlohmann::json::array({one})).dump();
      EXPECT_FALSE(loader->load(*saved, threads).ok()) << saved->description;
    }
}

}  // namespace

void check_variant(const Backend& backend, const Target& target, const CompileOptions& options,
                   const Function& function, const Variant& variant,
                   const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected,
                   const Tolerance& tolerance) {
  SCOPED_TRACE(variant.to_string());
  auto kernel = backend.compile(function, variant, target, options);
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  const TeamScope team(options.threads);
  std::vector<Tensor> got;
  for (const int leftovers : {0xff, 0x7f}) {
    got = run_guarded(**kernel, function, variant, inputs, leftovers);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) expect_close(expected[i], got[i], tolerance);
  }
  check_nan(backend, **kernel, function, variant, inputs);
  // Tasks of native's convolutions may write the same rows, each rounding them in its own way: the
  // last one to write decides on the bits.
  const TeamScope in_order(backend.name() == "native" ? 1 : options.threads);
  const auto run = [&](Kernel& again) { return run_guarded(again, function, variant, inputs); };
  got = run(**kernel);
  EXPECT_TRUE(same_bits(run(**kernel), got)) << "another run gives other bits";
  check_saved(**kernel, options.threads, buffers_of(function, variant), got, run);
}

std::vector<std::string> operators_with_cases() {
  std::set<std::string> names;
  for (const OpCase& c : op_cases()) names.insert(c.op);
  return {names.begin(), names.end()};
}

std::string test_name_of_operator(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

void check_operator(const Backend& backend, const Target& target, const std::string& op,
                    const std::set<std::string>& refused, const CheckCase& check) {
  register_all_ops();
  size_t taken = 0, cases = 0;
  std::string why;
  for (const OpCase& c : op_cases(op)) {
    SCOPED_TRACE(c.to_string());
    ++cases;
    auto built = build_case(c, 5);
    ASSERT_TRUE(built.ok()) << built.status().to_string();
    const auto variants = backend.variants(built->function, target, {2, ""});
    if (variants.ok()) {
      EXPECT_FALSE(variants->empty());
      ++taken;
      check(built->function, built->inputs);
      continue;
    }
    EXPECT_EQ(variants.status().code(), ErrorCode::kUnsupported) << variants.status().to_string();
    EXPECT_GT(variants.status().message().size(), 5U);
    why = variants.status().message();
  }
  const bool known = refused.count(op) > 0;
  EXPECT_EQ(taken == 0, known) << target.kind << " takes " << taken << " of the " << cases
                               << " cases of " << op << ": " << why;
  if (known)
    GTEST_SKIP() << target.kind << " refuses every case of the operator, as it is known to";
}

void check_variants(const Backend& backend, const Target& target, const Function& function,
                    const std::vector<Tensor>& inputs, const Tolerance& tolerance) {
  const CompileOptions options{2, ""};
  const auto variants = backend.variants(function, target, options);
  ASSERT_TRUE(variants.ok()) << variants.status().to_string();
  const std::vector<Tensor> expected = evaluate(function, inputs);
  for (const Variant& variant : *variants)
    check_variant(backend, target, options, function, variant, inputs, expected, tolerance);
}

}  // namespace collage::testing
