#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "net/openssl.h"

// Private to net/.
namespace berth::net::internal {

// How OpenSSL reaches the bytes of a TlsPipe; one serves any number of them, which it must outlive.
class TlsPipeMethod {
 public:
  TlsPipeMethod();
  [[nodiscard]] const BIO_METHOD* native() const { return method_.get(); }

 private:
  std::unique_ptr<BIO_METHOD, OpensslFree<BIO_meth_free>> method_;
};

// The server's end of TLS on one connection, as a function of bytes: it has no socket and never
// waits. What it makes goes into buffers of the caller, which many connections may share, so that
// as many records as there are leave by one call of the kernel.
//
//   kHandshake ──> kOpen ──> kEnded
//        └───────────┴─────> kBroken
//
// Not thread-safe.
class TlsPipe {
 public:
  enum class State : uint8_t {
    kHandshake,
    kOpen,
    kEnded,   // The peer said that nothing more follows.
    kBroken,  // It spoke no TLS, or its TLS was not accepted.
  };

  TlsPipe(SSL_CTX* context, const TlsPipeMethod& method);
  TlsPipe(const TlsPipe&) = delete;
  TlsPipe& operator=(const TlsPipe&) = delete;

  // Takes all of `coming`, what the peer sent: appends what it says to `plain`, and what the peer
  // has to be sent in turn to `sealed`, also when it ends in kBroken. A record that is not whole is
  // kept for the next time. What follows kEnded or kBroken is dropped.
  State Receive(std::string_view coming, std::string& plain, std::string& sealed);

  // Appends `plain` to `sealed` in as few records as hold it. False: the connection is of no more
  // use. REQUIRES: kOpen.
  [[nodiscard]] bool Seal(std::string_view plain, std::string& sealed);

  // Appends that nothing more follows. Nothing may be sealed after it.
  void SealEnd(std::string& sealed);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] SSL* native() const { return tls_.get(); }

 private:
  friend class TlsPipeMethod;
  // Where OpenSSL reads and writes while one of the calls above is under way.
  struct Wires {
    std::string_view coming;
    std::string* sealed = nullptr;
  };

  static int ReadWire(BIO* bio, char* data, int size);
  static int WriteWire(BIO* bio, const char* data, int size);
  static long ControlWire(BIO* bio, int command, long number, void* pointer);

  [[nodiscard]] State Advance(std::string& plain);
  [[nodiscard]] State After(int result) const;

  Wires wires_;
  std::unique_ptr<SSL, OpensslFree<SSL_free>> tls_;
  State state_ = State::kHandshake;
};

}  // namespace berth::net::internal
