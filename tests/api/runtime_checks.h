/* What the programs on libcollage_runtime share. */
#ifndef RUNTIME_CHECKS_H
#define RUNTIME_CHECKS_H

#include <collage/runtime.h>
#include <dlpack/dlpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program, saying why, unless it holds. */
static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, collage_last_error());
  exit(1);
}

/* Floats on the CPU; they are dense where `strides` is null. */
static DLManagedTensor tensor(float* data, int32_t ndim, int64_t* shape, int64_t* strides) {
  DLManagedTensor made;
  memset(&made, 0, sizeof made);
  made.dl_tensor.data = data;
  made.dl_tensor.device.device_type = kDLCPU;
  made.dl_tensor.ndim = ndim;
  made.dl_tensor.dtype.code = kDLFloat;
  made.dl_tensor.dtype.bits = 32;
  made.dl_tensor.dtype.lanes = 1;
  made.dl_tensor.shape = shape;
  made.dl_tensor.strides = strides;
  return made;
}

#endif
