#include "artifact/tiny_plan.h"

#include "artifact/portable_kernels.h"
#include "backend/memory/kernels/regions_kernel.h"
#include "backend/reference/kernels/convert.h"
#include "backend/reference/kernels/interpreted_kernel.h"
#include "ir/text_parser.h"
#include "runtime/executor.h"

namespace collage::testing {

namespace {

constexpr int64_t kChannels = 20, kSide = 3;
const TensorType kType{{1, kChannels, kSide, kSide}, DType::kFloat32};

BufferId add(Plan& plan, Buffer::Place place, size_t index, const Encoding& encoding) {
  Buffer buffer;
  buffer.place = place;
  buffer.index = index;
  buffer.type = kType;
  buffer.encoding = encoding;
  buffer.bytes = encoding.layout.physical_bytes(kType.shape, encoding.dtype);
  if (place == Buffer::Place::kArena) {
    buffer.offset = plan.arena_bytes;
    plan.arena_bytes += (buffer.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  }
  plan.buffers.push_back(std::move(buffer));
  return plan.buffers.size() - 1;
}

std::shared_ptr<Kernel> product() {
  std::vector<float> weights;
  for (int i = 0; i < kChannels * kSide * kSide; ++i)
    weights.push_back(0.25f * static_cast<float>(i));
  std::vector<Tensor> side = {Tensor::from<float>(kType.shape, weights)};
  ParseOptions options;
  options.side_tensors = &side;
  const Function function = parse_function(R"(#[version = "0.0.5"]
fn (%x: Tensor[(1, 20, 3, 3), float32]) {
  %0 = nn.relu(%x);
  multiply(%0, meta[relay.Constant][0])
}

#[metadata]
{"relay.Constant": [{"side": 0}], "side_file": "weights"}
)",
                                           options)
                                .value();
  return make_interpreted_kernel(function).value();
}

}  // namespace

std::shared_ptr<Plan> tiny_plan() {
  register_portable_kernels();
  auto plan = std::make_shared<Plan>();
  plan->inputs = {{"x", kType}};
  plan->outputs = {{"y", kType}, {"copy of x", kType}};
  const Encoding plain = plain_encoding(kType);
  Encoding blocked = plain;
  blocked.layout = Layout::channels_blocked(4, 16);
  const BufferId x = add(*plan, Buffer::Place::kInput, 0, plain);
  const BufferId y = add(*plan, Buffer::Place::kOutput, 0, plain);
  const BufferId copy = add(*plan, Buffer::Place::kOutput, 1, plain);
  const BufferId a = add(*plan, Buffer::Place::kArena, 0, plain);
  const BufferId b = add(*plan, Buffer::Place::kArena, 0, blocked);
  plan->steps.push_back({"product", "reference", product(), {x}, {a}});
  plan->steps.push_back(
      {"to_blocks", "", make_conversion_kernel(kType, plain, blocked).value(), {a}, {b}});
  plan->steps.push_back(
      {"from_blocks", "", make_conversion_kernel(kType, blocked, plain).value(), {b}, {y}});
  plan->steps.push_back({"copy", "", memory::make_copy_kernel(kType.bytes()), {x}, {copy}});
  return plan;
}

SavedPlans saved_tiny_plan() {
  PlanSaver saver(1);
  Status added = saver.add(kPlanEntry, *tiny_plan());
  return added.ok() ? saver.finish().value() : SavedPlans();
}

Tensor tiny_input(int seed) {
  std::vector<float> values;
  for (int i = 0; i < kChannels * kSide * kSide; ++i)
    values.push_back(static_cast<float>((i * 7 + seed * 13) % 31) - 15.0f);
  return Tensor::from<float>(kType.shape, values);
}

std::vector<Tensor> run_plan(std::shared_ptr<const Plan> plan, const Tensor& input) {
  Executor executor = Executor::create(std::move(plan), 1).value();
  std::vector<Tensor> outputs(executor.plan().outputs.size());
  const Status status = executor.run(std::span<const Tensor>(&input, 1), outputs);
  return status.ok() ? outputs : std::vector<Tensor>();
}

std::string bytes_of(const std::vector<Tensor>& tensors) {
  std::string bytes;
  for (const Tensor& tensor : tensors)
    bytes.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
  return bytes;
}

}  // namespace collage::testing
