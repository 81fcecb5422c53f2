#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

// The certificates of an API server of our own: an authority made at the first start, what it
// signs, and the files they are kept in. Keys are ECDSA on P-256.
namespace berth::net {

struct KeyPair {
  std::string certificate_pem;
  std::string key_pem;
};

struct CertificateRequest {
  std::string common_name;                 // For clients: the user.
  std::vector<std::string> organisations;  // For clients: the groups.
  std::vector<std::string> hosts;          // For servers: names and addresses they are reached at.
  bool server = false;
};

// An authority that signs servers and clients, good for ten years.
Result<KeyPair> MakeAuthority(const std::string& common_name, Instant now);
// A certificate signed by `authority`, good for one year.
Result<KeyPair> Issue(const KeyPair& authority, const CertificateRequest& request, Instant now);
// Whether the certificate is signed by the authority, names every host, and is good for `left` from
// `now` on; what it lacks otherwise.
Status CheckCertificate(const KeyPair& authority, const std::string& certificate_pem,
                        const std::vector<std::string>& hosts, Instant until);

// All that `berth up` serves with.
struct Pki {
  KeyPair authority;
  KeyPair server;
  KeyPair admin;  // User "berth-admin" of group "system:masters".
};

// Made anew, in memory only. `host`: what the server listens on, beside localhost, 127.0.0.1 and
// ::1.
Result<Pki> MakePki(const std::string& host, Instant now);

// Reads folder/{ca,server,admin}.{crt,key}, making what is absent; the keys are readable by the
// owner alone. A server or admin certificate that expires within 30 days or doesn't name `host` is
// made again. A file that can't be read as what it is gives an error and is left alone, and so does
// an authority that is gone when there is what it signed.
Result<Pki> LoadOrMakePki(const std::filesystem::path& folder, const std::string& host,
                          Instant now);

// Writes `text` so that the file is the old or the new one, whole, at any point; mode 0600.
Status WritePrivateFile(const std::filesystem::path& path, const std::string& text);

// What is configuration, in one way or another, is smaller than this.
inline constexpr size_t kFileBytesMax = size_t{64} << 20;
// Errors name the file: it can't be read, is larger, is a folder or a named pipe, which nobody may
// ever write to.
Result<std::string> ReadFile(const std::filesystem::path& path, size_t bytes_max = kFileBytesMax);

}  // namespace berth::net
