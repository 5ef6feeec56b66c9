// How much of the arithmetic is said to be left to the host.
#include "report/host_share.h"

#include <gtest/gtest.h>

#include "backend/targets/backends.h"

namespace collage {
namespace {

ReportedPlan::Kernel kernel(const std::string& target, const std::string& op, PostDfsIndex node,
                            double flops) {
  ReportedPlan::Kernel made;
  made.target = target;
  made.ops = {{op, "", node}};
  made.nodes = {node};
  made.flops = flops;
  return made;
}

CompileReport report_of(std::vector<ReportedPlan::Kernel> kernels) {
  register_all();
  CompileReport report;
  report.targets = {"native", "reference"};
  report.kernels = std::move(kernels);
  return report;
}

TEST(HostShare, IsOfTheArithmetic) {
  const HostShare found = host_share(
      report_of({kernel("native", "nn.conv2d", 1, 75), kernel("reference", "scan", 2, 25)}));
  EXPECT_DOUBLE_EQ(found.share, 0.25);
  EXPECT_EQ(found.host, "reference");
  EXPECT_EQ(found.operators_text(), "scan");
  EXPECT_FALSE(found.alone);
}

TEST(HostShare, IsOfWhatNoOtherTargetHasAKernelFor) {
  CompileReport report =
      report_of({kernel("native", "nn.conv2d", 1, 50), kernel("reference", "scan", 2, 25),
                 kernel("reference", "nn.relu", 3, 25)});
  report.considered = {{"reference", "reference", {3}, Measured{1e-6, 1e-6, 1e-6, 1}},
                       {"native", "loops", {3, 4}, Measured{2e-6, 2e-6, 2e-6, 1}},
                       {"blas", "", {2}, Unknown{}},  // none of its variants works
                       {"native", "loops", {2}, Invalid{"crashed", {}}}};
  const HostShare found = host_share(report);
  EXPECT_DOUBLE_EQ(found.share, 0.25);
  EXPECT_EQ(found.operators_text(), "scan") << "the host's nn.relu was the fastest of two";
}

TEST(HostShare, LeavesControlFlowOut) {
  const HostShare found = host_share(
      report_of({kernel("native", "exp", 1, 10), kernel("reference", "control.loop", 2, 90)}));
  EXPECT_EQ(found.share, 0);
  EXPECT_TRUE(found.operators.empty());
}

}  // namespace
}  // namespace collage
