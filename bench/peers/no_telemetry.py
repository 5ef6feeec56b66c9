"""To be imported before another runtime: what ONNX Runtime and OpenVINO would report of this process to their makers is off.

ONNX Runtime reads the variables. OpenVINO's tools report by a module of their own, and do without where it cannot be imported; its
documented switch is a file in the user's home, which is the user's to write.
"""

import os
import sys

os.environ |= {"ORT_DISABLE_TELEMETRY": "1", "ORT_TELEMETRY_DISABLED": "1"}
sys.modules["openvino_telemetry"] = None
