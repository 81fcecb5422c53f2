#include "net/certificates.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "base/check.h"
#include "net/openssl.h"

namespace berth::net {
namespace {

constexpr int64_t kDay = 24 * 60 * 60;
constexpr int64_t kAuthorityDays = 3650;
constexpr int64_t kCertificateDays = 365;
constexpr Duration kRenewBefore = Duration::Seconds(30 * kDay);

using Key = OpensslKey;
using Certificate = std::unique_ptr<X509, OpensslFree<X509_free>>;
using Bio = OpensslBio;
using Extension = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;

bool IsAddress(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

Result<Certificate> ParseCertificate(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return OpensslError("not a certificate in PEM");
  return certificate;
}

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool AddName(X509_NAME* name, const char* field, const std::string& value) {
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

bool SetSerial(X509* certificate) {
  unsigned char random[16];
  if (RAND_bytes(random, sizeof(random)) != 1) return false;
  random[0] &= 0x7f;
  BIGNUM* number = BN_bin2bn(random, sizeof(random), nullptr);
  const bool fine = BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return fine;
}

// What makes a certificate, beside its keys.
struct Template {
  std::string common_name;
  std::vector<std::string> organisations;
  int64_t days = 0;
  std::vector<std::pair<int, std::string>> extensions;
};

// Signs with the issuer's key; with itself when `issuer` is null.
Result<KeyPair> Make(const Template& wanted, X509* issuer, EVP_PKEY* issuer_key, Instant now) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  if (key == nullptr || certificate == nullptr) return OpensslError("making a key");
  X509* x = certificate.get();
  X509_NAME* name = X509_get_subject_name(x);
  bool fine = X509_set_version(x, 2) == 1 && SetSerial(x) && X509_set_pubkey(x, key.get()) == 1;
  for (const std::string& organisation : wanted.organisations) {
    fine = fine && AddName(name, "O", organisation);
  }
  fine = fine && AddName(name, "CN", wanted.common_name);
  // A minute early, for clocks that are behind.
  ASN1_TIME_set(X509_getm_notBefore(x), now.seconds() - 60);
  ASN1_TIME_set(X509_getm_notAfter(x), now.seconds() + wanted.days * kDay);
  X509* signer = issuer == nullptr ? x : issuer;
  fine = fine && X509_set_issuer_name(x, X509_get_subject_name(signer)) == 1;
  for (const auto& [kind, value] : wanted.extensions)
    fine = fine && AddExtension(x, signer, kind, value);
  EVP_PKEY* signing_key = issuer_key == nullptr ? key.get() : issuer_key;
  fine = fine && X509_sign(x, signing_key, EVP_sha256()) > 0;
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  fine = fine && PEM_write_bio_X509(certificate_text.get(), x) == 1;
  fine = fine && PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0,
                                               nullptr, nullptr) == 1;
  if (!fine) return OpensslError(fmt::format("making the certificate of {}", wanted.common_name));
  return KeyPair{.certificate_pem = TextOf(certificate_text), .key_pem = TextOf(key_text)};
}

std::vector<std::string> ServerHosts(const std::string& host) {
  std::vector<std::string> hosts = {"localhost",          "kubernetes",
                                    "kubernetes.default", "kubernetes.default.svc",
                                    "127.0.0.1",          "::1"};
  // An address that stands for all of them is no name to reach a server at.
  const bool any = host.empty() || host == "0.0.0.0" || host == "::";
  bool known = any;
  for (const std::string& each : hosts) known = known || each == host;
  if (!known) hosts.push_back(host);
  return hosts;
}

CertificateRequest ServerRequest(const std::string& host) {
  return {.common_name = "berth-apiserver",
          .organisations = {},
          .hosts = ServerHosts(host),
          .server = true};
}

CertificateRequest AdminRequest() {
  return {.common_name = "berth-admin",
          .organisations = {"system:masters"},
          .hosts = {},
          .server = false};
}

}  // namespace

Result<KeyPair> MakeAuthority(const std::string& common_name, Instant now) {
  const Template wanted{
      .common_name = common_name,
      .organisations = {},
      .days = kAuthorityDays,
      .extensions = {{NID_basic_constraints, "critical,CA:TRUE"},
                     {NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature"},
                     {NID_subject_key_identifier, "hash"}}};
  return Make(wanted, nullptr, nullptr, now);
}

Result<KeyPair> Issue(const KeyPair& authority, const CertificateRequest& request, Instant now) {
  const Result<Certificate> issuer = ParseCertificate(authority.certificate_pem);
  if (!issuer) return std::unexpected(issuer.error());
  const Result<Key> key = ParseKey(authority.key_pem);
  if (!key) return std::unexpected(key.error());
  Template wanted{.common_name = request.common_name,
                  .organisations = request.organisations,
                  .days = kCertificateDays,
                  .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                                 {NID_key_usage, "critical,digitalSignature"},
                                 {NID_ext_key_usage, request.server ? "serverAuth" : "clientAuth"},
                                 {NID_authority_key_identifier, "keyid"}}};
  std::string names;
  for (const std::string& host : request.hosts) {
    if (host.find_first_of(",:\r\n") != std::string::npos && !IsAddress(host)) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("host {} is neither a name nor an address", host));
    }
    names += fmt::format("{}{}:{}", names.empty() ? "" : ",", IsAddress(host) ? "IP" : "DNS", host);
  }
  if (!names.empty()) wanted.extensions.emplace_back(NID_subject_alt_name, names);
  return Make(wanted, issuer->get(), key->get(), now);
}

Status CheckCertificate(const KeyPair& authority, const std::string& certificate_pem,
                        const std::vector<std::string>& hosts, Instant until) {
  const Result<Certificate> issuer = ParseCertificate(authority.certificate_pem);
  if (!issuer) return std::unexpected(issuer.error());
  const Result<Certificate> certificate = ParseCertificate(certificate_pem);
  if (!certificate) return std::unexpected(certificate.error());
  if (X509_verify(certificate->get(), X509_get0_pubkey(issuer->get())) != 1) {
    ERR_clear_error();
    return Fail(ErrorCode::kConflict, "not signed by this authority");
  }
  time_t limit = static_cast<time_t>(until.seconds());
  if (X509_cmp_time(X509_get0_notAfter(certificate->get()), &limit) <= 0) {
    return Fail(ErrorCode::kConflict, "it expires too soon");
  }
  for (const std::string& host : hosts) {
    const int found =
        IsAddress(host) ? X509_check_ip_asc(certificate->get(), host.c_str(), 0)
                        : X509_check_host(certificate->get(), host.data(), host.size(), 0, nullptr);
    if (found != 1) return Fail(ErrorCode::kConflict, fmt::format("it does not name {}", host));
  }
  return {};
}

Result<Pki> MakePki(const std::string& host, Instant now) {
  Result<KeyPair> authority = MakeAuthority("berth-ca", now);
  if (!authority) return std::unexpected(authority.error());
  Result<KeyPair> server = Issue(*authority, ServerRequest(host), now);
  if (!server) return std::unexpected(server.error());
  Result<KeyPair> admin = Issue(*authority, AdminRequest(), now);
  if (!admin) return std::unexpected(admin.error());
  return Pki{
      .authority = std::move(*authority), .server = std::move(*server), .admin = std::move(*admin)};
}

Result<std::string> ReadFile(const std::filesystem::path& path, size_t bytes_max) {
  const auto fail = [&path](ErrorCode code, std::string_view why) {
    return Fail(code, fmt::format("{}: {}", path.string(), why));
  };
  std::error_code error;
  // A shell's <(command) is one that has a writer.
  const bool of_shell = path.string().starts_with("/dev/") || path.string().starts_with("/proc/");
  if (std::filesystem::is_fifo(path, error) && !of_shell)
    return fail(ErrorCode::kInvalid, "is a named pipe");
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
                fmt::format("can't be read: {}", std::strerror(errno)));
  }
  // Opening a directory succeeds; reading it fails.
  if (std::filesystem::is_directory(path, error))
    return fail(ErrorCode::kInvalid, "is a directory");
  constexpr size_t kChunkBytes = size_t{64} << 10;
  std::string text;
  try {
    while (in && text.size() <= bytes_max) {
      const size_t size = text.size();
      text.resize(size + kChunkBytes);
      in.read(text.data() + size, static_cast<std::streamsize>(kChunkBytes));
      text.resize(size + static_cast<size_t>(in.gcount()));
    }
  } catch (const std::ios_base::failure&) {  // What the library makes of a failed read.
    return fail(ErrorCode::kUnavailable, "can't be read");
  }
  if (in.bad()) return fail(ErrorCode::kUnavailable, "can't be read");
  if (text.size() > bytes_max)
    return fail(ErrorCode::kInvalid, fmt::format("larger than {} bytes", bytes_max));
  return text;
}

Status WritePrivateFile(const std::filesystem::path& path, const std::string& text) {
  const std::string draft = fmt::format("{}.{}.new", path.string(), getpid());
  const auto fail = [&](int number) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}: can't be written: {}", path.string(), std::strerror(number)));
  };
  unlink(draft.c_str());
  const int file = open(draft.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return fail(errno);
  size_t written = 0;
  int number = 0;
  while (number == 0 && written < text.size()) {
    const ssize_t count = write(file, text.data() + written, text.size() - written);
    if (count < 0 && errno != EINTR) number = errno;
    if (count > 0) written += static_cast<size_t>(count);
  }
  if (number == 0 && fsync(file) != 0) number = errno;
  close(file);
  if (number == 0 && rename(draft.c_str(), path.c_str()) != 0) number = errno;
  if (number == 0) return {};
  unlink(draft.c_str());
  return fail(number);
}

namespace {

// Both files of a pair, or nothing when neither is there.
Result<KeyPair> ReadPair(const std::filesystem::path& folder, const std::string& name) {
  Result<std::string> certificate = ReadFile(folder / (name + ".crt"));
  if (!certificate) return std::unexpected(certificate.error());
  Result<std::string> key = ReadFile(folder / (name + ".key"));
  if (!key) return std::unexpected(key.error());
  const auto unreadable = [&](const char* extension, const Error& error) {
    return Fail(ErrorCode::kDamaged,
                fmt::format("{}: {}", (folder / (name + extension)).string(), error.message));
  };
  const Result<Certificate> parsed = ParseCertificate(*certificate);
  if (!parsed) return unreadable(".crt", parsed.error());
  const Result<Key> parsed_key = ParseKey(*key);
  if (!parsed_key) return unreadable(".key", parsed_key.error());
  if (X509_check_private_key(parsed->get(), parsed_key->get()) != 1) {
    ERR_clear_error();
    return unreadable(".key",
                      Error{ErrorCode::kDamaged, "does not belong to the certificate beside it"});
  }
  return KeyPair{.certificate_pem = std::move(*certificate), .key_pem = std::move(*key)};
}

Status WritePair(const std::filesystem::path& folder, const std::string& name,
                 const KeyPair& pair) {
  // The key last: a pair without a key is made again.
  Status status = WritePrivateFile(folder / (name + ".crt"), pair.certificate_pem);
  if (status) status = WritePrivateFile(folder / (name + ".key"), pair.key_pem);
  return status;
}

Result<KeyPair> LoadOrIssue(const std::filesystem::path& folder, const std::string& name,
                            const KeyPair& authority, const CertificateRequest& request,
                            Instant now) {
  Result<KeyPair> pair = ReadPair(folder, name);
  if (pair && CheckCertificate(authority, pair->certificate_pem, request.hosts, now + kRenewBefore))
    return pair;
  if (!pair && pair.error().code != ErrorCode::kNotFound) return pair;
  pair = Issue(authority, request, now);
  if (!pair) return pair;
  const Status written = WritePair(folder, name, *pair);
  if (!written) return std::unexpected(written.error());
  return pair;
}

}  // namespace

Result<Pki> LoadOrMakePki(const std::filesystem::path& folder, const std::string& host,
                          Instant now) {
  Result<KeyPair> authority = ReadPair(folder, "ca");
  if (!authority && authority.error().code == ErrorCode::kNotFound) {
    // What it signed is written after it: clients trust it already.
    std::error_code ignored;
    if (std::filesystem::exists(folder / "server.crt", ignored)) {
      return Fail(ErrorCode::kDamaged,
                  fmt::format("{}; put it back, or remove server.crt, too, for a new authority, "
                              "which clients trust once they have the new kubeconfig",
                              authority.error().message));
    }
    authority = MakeAuthority("berth-ca", now);
    if (authority) {
      const Status written = WritePair(folder, "ca", *authority);
      if (!written) return std::unexpected(written.error());
    }
  }
  if (!authority) return std::unexpected(authority.error());
  Result<KeyPair> server = LoadOrIssue(folder, "server", *authority, ServerRequest(host), now);
  if (!server) return std::unexpected(server.error());
  Result<KeyPair> admin = LoadOrIssue(folder, "admin", *authority, AdminRequest(), now);
  if (!admin) return std::unexpected(admin.error());
  return Pki{
      .authority = std::move(*authority), .server = std::move(*server), .admin = std::move(*admin)};
}

}  // namespace berth::net
