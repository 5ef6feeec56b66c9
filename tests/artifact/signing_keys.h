// Keys that sign nothing but tests: two pairs of Ed25519, made by
//   openssl genpkey -algorithm ed25519, openssl pkey -pubout
#pragma once

namespace collage::testing {

inline constexpr char kPrivateKey[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEICe0uwlChKCBTG1N7mh6nghh8TRWb05aOc4F+LcgAxD5\n"
    "-----END PRIVATE KEY-----\n";
inline constexpr char kPublicKey[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAKdC0dLDHUC5coNyU/LZzIa/yJJbW5k9Nh/SUdOF5hKk=\n"
    "-----END PUBLIC KEY-----\n";
inline constexpr char kOtherPublicKey[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAErJC3FCnafVTEMZO7OJeO8KFYPz6S5ewzMer4RI8BTs=\n"
    "-----END PUBLIC KEY-----\n";
// Of another algorithm, X25519.
inline constexpr char kForeignPublicKey[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VuAyEAIqlzktgNO9lD0gqsl25y/yQ25B1/WdRpLAz/s0rw8H8=\n"
    "-----END PUBLIC KEY-----\n";

}  // namespace collage::testing
