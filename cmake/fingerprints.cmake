# Writes a header with a hash of each list of sources: cmake -D LISTS=FILE -D HEADER=FILE -P fingerprints.cmake
# A line of LISTS is "name|what else counts|source|source|…". Runs while building, so that editing a source needs no
# configuring; what did not change is not written.
file(STRINGS ${LISTS} lines)
set(entries "")
foreach(line IN LISTS lines)
  string(REPLACE "|" ";" fields "${line}")
  list(POP_FRONT fields name also)
  set(hashes "${also}")
  foreach(source IN LISTS fields)
    file(SHA256 ${source} hash)
    string(APPEND hashes ${hash})
  endforeach()
  string(SHA256 hash "${hashes}")
  string(SUBSTRING ${hash} 0 12 hash)
  string(APPEND entries "    {\"${name}\", \"${hash}\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT
[[// Generated while building: hashes of sources (src/backend/fingerprint.h).
#pragma once

inline constexpr struct {
  const char* name;
  const char* hash;
} kFingerprints[] = {
@entries@};
]])
