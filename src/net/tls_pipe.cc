#include "net/tls_pipe.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace berth::net::internal {

namespace {

constexpr size_t kRecordBytesMax = 16 * 1024;  // RFC 8446, 5.1.

}  // namespace

TlsPipeMethod::TlsPipeMethod() : method_(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "berth")) {
  CHECK(method_ != nullptr);
  BIO_meth_set_read(method_.get(), TlsPipe::ReadWire);
  BIO_meth_set_write(method_.get(), TlsPipe::WriteWire);
  BIO_meth_set_ctrl(method_.get(), TlsPipe::ControlWire);
}

TlsPipe::TlsPipe(SSL_CTX* context, const TlsPipeMethod& method) : tls_(SSL_new(context)) {
  BIO* bio = BIO_new(method.native());
  CHECK(tls_ != nullptr);
  CHECK(bio != nullptr);
  BIO_set_data(bio, &wires_);
  BIO_set_init(bio, 1);
  SSL_set_bio(tls_.get(), bio, bio);
  SSL_set_accept_state(tls_.get());
}

int TlsPipe::ReadWire(BIO* bio, char* data, int size) {
  auto& wires = *static_cast<Wires*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (wires.coming.empty()) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const size_t count = std::min(static_cast<size_t>(size), wires.coming.size());
  std::memcpy(data, wires.coming.data(), count);
  wires.coming.remove_prefix(count);
  return static_cast<int>(count);
}

int TlsPipe::WriteWire(BIO* bio, const char* data, int size) {
  const auto& wires = *static_cast<Wires*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (wires.sealed == nullptr) return -1;
  wires.sealed->append(data, static_cast<size_t>(size));
  return size;
}

long TlsPipe::ControlWire(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;  // It holds nothing back, and can't do anything else.
}

TlsPipe::State TlsPipe::Receive(std::string_view coming, std::string& plain, std::string& sealed) {
  if (state_ == State::kEnded || state_ == State::kBroken) return state_;
  wires_ = {.coming = coming, .sealed = &sealed};
  ERR_clear_error();
  state_ = Advance(plain);
  const bool taken = wires_.coming.empty();
  wires_ = {};
  CHECK(taken || state_ == State::kEnded || state_ == State::kBroken);
  return state_;
}

TlsPipe::State TlsPipe::Advance(std::string& plain) {
  if (state_ == State::kHandshake) {
    const int result = SSL_do_handshake(tls_.get());
    if (result != 1) return After(result) == State::kOpen ? State::kHandshake : State::kBroken;
  }
  std::array<char, kRecordBytesMax> record;  // Not cleared: SSL_read says what of it is set.
  int count = 0;
  while ((count = SSL_read(tls_.get(), record.data(), static_cast<int>(record.size()))) > 0) {
    plain.append(record.data(), static_cast<size_t>(count));
  }
  return After(count);
}

// What a call came to that could not go on; kOpen: it waits for more.
TlsPipe::State TlsPipe::After(int result) const {
  const int why = SSL_get_error(tls_.get(), result);
  if (why == SSL_ERROR_WANT_READ) return State::kOpen;
  ERR_clear_error();
  return why == SSL_ERROR_ZERO_RETURN ? State::kEnded : State::kBroken;
}

bool TlsPipe::Seal(std::string_view plain, std::string& sealed) {
  CHECK(state_ == State::kOpen);
  wires_.sealed = &sealed;
  ERR_clear_error();
  // All of it or nothing: the wire never makes it wait.
  size_t written = 0;
  const bool done = SSL_write_ex(tls_.get(), plain.data(), plain.size(), &written) == 1;
  wires_ = {};
  if (done) return written == plain.size();
  ERR_clear_error();
  state_ = State::kBroken;
  return false;
}

void TlsPipe::SealEnd(std::string& sealed) {
  if (state_ == State::kHandshake || state_ == State::kBroken) return;
  wires_.sealed = &sealed;
  ERR_clear_error();
  if (SSL_shutdown(tls_.get()) < 0) ERR_clear_error();
  wires_ = {};
}

}  // namespace berth::net::internal
