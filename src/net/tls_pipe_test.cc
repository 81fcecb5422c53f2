// Goal: what a client says over TLS comes out of the pipe whole and in order however its bytes are
// cut, what is sealed is read by the client as it was, ends are told apart from breaks, and nothing
// that is sent in place of TLS does more than break it. Method: the pipe against OpenSSL's own
// client on memory, without sockets.
#include "net/tls_pipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/prng.h"
#include "net/certificates.h"
#include "net/tls.h"

namespace berth::net::internal {
namespace {

using State = TlsPipe::State;

Instant Now() {
  return Instant{
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count()};
}

std::string Text(size_t size, uint64_t seed) {
  Prng prng(seed);
  std::string text(size, ' ');
  for (char& letter : text) letter = static_cast<char>('a' + prng.Below(26));
  return text;
}

class TlsPipeTest : public ::testing::Test {
 protected:
  TlsPipeTest() : client_context(SSL_CTX_new(TLS_client_method())) {
    const Result<Pki> pki = MakePki("127.0.0.1", Now());
    EXPECT_TRUE(pki.has_value());
    EXPECT_TRUE(UseIdentity(context, pki->server).has_value());
    Begin();
  }
  ~TlsPipeTest() override {
    SSL_free(client);
    SSL_CTX_free(client_context);
  }

  void Begin() {
    pipe = std::make_unique<TlsPipe>(context.native_handle(), method);
    SSL_free(client);
    client = SSL_new(client_context);
    SSL_set_bio(client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(client);
  }

  // What the client has to send.
  std::string FromClient() {
    std::string bytes(1 << 20, '\0');
    const int count = BIO_read(SSL_get_wbio(client), bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return bytes;
  }
  void ToClient(const std::string& bytes) {
    ASSERT_EQ(BIO_write(SSL_get_rbio(client), bytes.data(), static_cast<int>(bytes.size())),
              static_cast<int>(bytes.size()));
  }
  // Gives the pipe the client's bytes in pieces of that size, and the client what comes of it.
  State Carry(size_t piece_bytes) {
    const std::string coming = FromClient();
    State state = pipe->state();
    for (size_t at = 0; at < coming.size(); at += piece_bytes) {
      std::string sealed;
      state = pipe->Receive(std::string_view(coming).substr(at, piece_bytes), plain, sealed);
      if (!sealed.empty()) ToClient(sealed);
    }
    return state;
  }
  void Shake(size_t piece_bytes = SIZE_MAX / 2) {
    for (int round = 0; round < 4 && SSL_do_handshake(client) != 1; ++round) Carry(piece_bytes);
    ASSERT_TRUE(SSL_is_init_finished(client));
    ASSERT_EQ(Carry(piece_bytes), State::kOpen);
  }
  std::string ClientReads() {
    std::string text;
    char buffer[4096];
    for (int count = 0; (count = SSL_read(client, buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }

  boost::asio::ssl::context context = MakeContext(/*server=*/true);
  const TlsPipeMethod method;
  std::unique_ptr<TlsPipe> pipe;
  SSL_CTX* client_context;
  SSL* client = nullptr;
  std::string plain;
};

TEST_F(TlsPipeTest, BothSidesAreReadAsTheyWereWrittenHoweverTheBytesAreCut) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{5000}, size_t{1} << 20}) {
      SCOPED_TRACE(::testing::Message() << version << " by " << piece);
      SSL_CTX_set_min_proto_version(client_context, version);
      SSL_CTX_set_max_proto_version(client_context, version);
      Begin();
      Shake(piece);
      plain.clear();
      const std::string asked = Text(100'000, piece);
      ASSERT_EQ(SSL_write(client, asked.data(), static_cast<int>(asked.size())), 100'000);
      EXPECT_EQ(Carry(piece), State::kOpen);
      EXPECT_EQ(plain, asked);
      // Several writes, each of several records, leave as one text, behind what was there.
      std::string sealed = "behind";
      std::string told;
      for (uint64_t i = 0; i < 3; ++i) {
        const std::string text = Text(40'000, i);
        ASSERT_TRUE(pipe->Seal(text, sealed));
        told += text;
      }
      EXPECT_EQ(sealed.substr(0, 6), "behind");
      ToClient(sealed.substr(6));
      EXPECT_EQ(ClientReads(), told);
    }
  }
}

// As few records as hold it: each costs both sides a call of their own.
TEST_F(TlsPipeTest, LongTextsGoInFullRecords) {
  Shake();
  std::string sealed;
  ASSERT_TRUE(pipe->Seal(Text(64 * 1024, 1), sealed));
  size_t records = 0;
  for (size_t at = 0; at < sealed.size(); ++records) {
    const auto byte = [&](size_t i) {
      return static_cast<size_t>(static_cast<uint8_t>(sealed[i]));
    };
    ASSERT_LE(at + 5, sealed.size());
    at += 5 + (byte(at + 3) << 8) + byte(at + 4);
  }
  EXPECT_EQ(records, 4U);
}

TEST_F(TlsPipeTest, WhatCameBeforeTheEndIsToldAndWhatFollowsDropped) {
  Shake();
  ASSERT_EQ(SSL_write(client, "last words", 10), 10);
  SSL_shutdown(client);
  const std::string bytes = FromClient();
  std::string sealed;
  EXPECT_EQ(pipe->Receive(bytes, plain, sealed), State::kEnded);
  EXPECT_EQ(plain, "last words");
  EXPECT_EQ(pipe->Receive("more", plain, sealed), State::kEnded);
  EXPECT_EQ(plain, "last words");
}

TEST_F(TlsPipeTest, TheClientIsToldTheEnd) {
  Shake();
  std::string sealed;
  ASSERT_TRUE(pipe->Seal("answer", sealed));
  pipe->SealEnd(sealed);
  ToClient(sealed);
  EXPECT_EQ(ClientReads(), "answer");
  EXPECT_EQ(SSL_get_shutdown(client), SSL_RECEIVED_SHUTDOWN);
}

// A peer may ask for new keys at any time (RFC 8446, 4.6.3): both sides go on with them.
TEST_F(TlsPipeTest, KeysAreRenewedWhenTheClientAsks) {
  Shake();
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(SSL_key_update(client, SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(SSL_write(client, "ask", 3), 3);
    plain.clear();
    EXPECT_EQ(Carry(5), State::kOpen);
    EXPECT_EQ(plain, "ask");
    std::string sealed;
    ASSERT_TRUE(pipe->Seal("answer", sealed));
    ToClient(sealed);
    EXPECT_EQ(ClientReads(), "answer");
  }
}

TEST_F(TlsPipeTest, ARecordThatWasChangedBreaksItAndTheClientIsTold) {
  Shake();
  ASSERT_EQ(SSL_write(client, "first", 5), 5);
  std::string bytes = FromClient();
  ASSERT_EQ(SSL_write(client, "second", 6), 6);
  std::string changed = FromClient();
  changed.back() = static_cast<char>(changed.back() ^ 1);
  std::string sealed;
  EXPECT_EQ(pipe->Receive(bytes + changed, plain, sealed), State::kBroken);
  EXPECT_EQ(plain, "first");
  EXPECT_FALSE(sealed.empty());
  ToClient(sealed);
  ClientReads();
  EXPECT_EQ(SSL_get_shutdown(client), SSL_RECEIVED_SHUTDOWN);
}

TEST_F(TlsPipeTest, RandomBytesBreakAHandshakeOrWaitForMore) {
  Prng prng(5);
  for (int i = 0; i < 200; ++i) {
    Begin();
    std::string bytes(1 + prng.Below(2000), '\0');
    for (char& byte : bytes) byte = static_cast<char>(prng.Below(256));
    if (i % 2 == 0) bytes.replace(0, 3, "\x16\x03\x01");
    std::string sealed;
    const State state = pipe->Receive(bytes, plain, sealed);
    EXPECT_TRUE(state == State::kBroken || state == State::kHandshake);
    EXPECT_EQ(plain, "");
  }
}

}  // namespace
}  // namespace berth::net::internal
