// Steps of plans for several devices: a device starts early, the host waits late.
#include "lower/step_order.h"

#include <gmock/gmock.h>

namespace collage {
namespace {

const VirtualDevice kGpu{"gpu", 0, ""};

class PlanOfSteps {
 public:
  BufferId buffer(const VirtualDevice& device = {}) {
    Buffer buffer;
    buffer.encoding.device = device;
    plan.buffers.push_back(buffer);
    return plan.buffers.size() - 1;
  }
  BufferId step(const std::string& name, std::vector<BufferId> inputs, BufferId output,
                const VirtualDevice& device = {}) {
    Step step;
    step.name = name;
    step.inputs = std::move(inputs);
    step.outputs = {output};
    step.device = device;
    plan.steps.push_back(std::move(step));
    return output;
  }
  std::string order() const {
    std::string text;
    for (size_t s : overlapped_order(plan)) text += plan.steps[s].name + " ";
    return text;
  }
  Plan plan;
};

TEST(StepOrder, BranchesOnTwoDevicesRunSideBySide) {
  PlanOfSteps p;
  const BufferId x = p.buffer();
  const BufferId a = p.step("host1", {x}, p.buffer());
  const BufferId b = p.step("host2", {a}, p.buffer());
  const BufferId up = p.step("upload", {x}, p.buffer(kGpu));
  const BufferId c = p.step("gpu1", {up}, p.buffer(kGpu), kGpu);
  const BufferId d = p.step("gpu2", {c}, p.buffer(kGpu), kGpu);
  const BufferId down = p.step("download", {d}, p.buffer());
  p.step("sum", {b, down}, p.buffer());
  EXPECT_EQ(p.order(), "upload gpu1 gpu2 host1 host2 download sum ");
}

TEST(StepOrder, WhatADeviceWaitsForComesFirst) {
  PlanOfSteps p;
  const BufferId x = p.buffer();
  p.step("alone", {x}, p.buffer());
  const BufferId a = p.step("before", {x}, p.buffer());
  const BufferId up = p.step("upload", {a}, p.buffer(kGpu));
  const BufferId c = p.step("gpu", {up}, p.buffer(kGpu), kGpu);
  const BufferId down = p.step("download", {c}, p.buffer());
  const BufferId again = p.step("upload again", {down}, p.buffer(kGpu));
  p.step("gpu again", {again}, p.buffer(kGpu), kGpu);
  EXPECT_EQ(p.order(), "before upload gpu download upload again gpu again alone ");
}

TEST(StepOrder, StepsWithEffectsStayInTurn) {
  PlanOfSteps p;
  const BufferId x = p.buffer();
  const BufferId up = p.step("upload", {x}, p.buffer(kGpu));
  const BufferId c = p.step("gpu", {up}, p.buffer(kGpu), kGpu);
  const BufferId down = p.step("download", {c}, p.buffer());
  p.step("first", {down}, p.buffer());
  p.step("second", {x}, p.buffer());
  EXPECT_EQ(p.order(), "upload gpu second download first ");
  p.plan.steps[3].has_effects = p.plan.steps[4].has_effects = true;
  EXPECT_EQ(p.order(), "upload gpu download first second ");
}

TEST(StepOrder, OnTheHostAloneStaysAsItIs) {
  PlanOfSteps p;
  const BufferId x = p.buffer();
  const BufferId a = p.step("first", {x}, p.buffer());
  p.step("second", {x}, p.buffer());
  p.step("third", {a}, p.buffer());
  EXPECT_EQ(p.order(), "first second third ");
}

}  // namespace
}  // namespace collage
