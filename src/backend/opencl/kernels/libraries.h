/// OpenCL and CLBlast, loaded when they are first asked for.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <clblast_c.h>

#include "base/result.h"

namespace collage::opencl {

/// What is called of OpenCL, as clNAME.
#define COLLAGE_OPENCL_CALLS(CALL)                                                                 \
  CALL(BuildProgram)                                                                               \
  CALL(CreateBuffer)                                                                               \
  CALL(CreateCommandQueue)                                                                         \
  CALL(CreateContext) CALL(CreateKernel) CALL(CreateProgramWithSource) CALL(CreateSubBuffer)       \
      CALL(EnqueueMapBuffer) CALL(EnqueueNDRangeKernel) CALL(EnqueueReadBuffer)                    \
          CALL(EnqueueWriteBuffer) CALL(Finish) CALL(Flush) CALL(GetDeviceIDs) CALL(GetDeviceInfo) \
              CALL(GetEventInfo) CALL(GetPlatformIDs) CALL(GetProgramBuildInfo)                    \
                  CALL(ReleaseContext) CALL(ReleaseEvent) CALL(ReleaseKernel)                      \
                      CALL(ReleaseMemObject) CALL(ReleaseProgram) CALL(SetKernelArg)

struct OpenCl {
#define COLLAGE_CALL(name) decltype(&::cl##name) name;
  COLLAGE_OPENCL_CALLS(COLLAGE_CALL)
#undef COLLAGE_CALL
};

/// kUnavailable where it cannot be loaded.
Result<const OpenCl*> opencl();
/// The same, for whoever has a device: then it is there.
const OpenCl& cl();

struct ClBlast {
  decltype(&CLBlastSgemm) gemm;
  decltype(&CLBlastSgemmBatched) gemm_batched;
};

/// kUnavailable where it cannot be loaded.
Result<const ClBlast*> clblast();

}  // namespace collage::opencl
