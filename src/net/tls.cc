#include "net/tls.h"

#include <boost/asio/buffer.hpp>

namespace berth::net::internal {

namespace ssl = boost::asio::ssl;

ssl::context MakeContext(bool server) {
  ssl::context context(server ? ssl::context::tls_server : ssl::context::tls_client);
  SSL_CTX* native = context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  // AES of 128 bits first, as Go has it: as safe for what it is, and cheaper.
  SSL_CTX_set_ciphersuites(
      native, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  if (server) {
    SSL_CTX_set_num_tickets(native, 0);
    SSL_CTX_set_options(native, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  }
  return context;
}

Status UseIdentity(ssl::context& context, const KeyPair& identity) {
  boost::system::error_code error;
  context.use_certificate_chain(boost::asio::buffer(identity.certificate_pem), error);
  if (error) return Fail(ErrorCode::kInvalid, "certificate: " + TlsErrorText(error));
  context.use_private_key(boost::asio::buffer(identity.key_pem), ssl::context::pem, error);
  if (error) return Fail(ErrorCode::kInvalid, "private key: " + TlsErrorText(error));
  return {};
}

Status TrustAuthority(ssl::context& context, const std::string& pem) {
  boost::system::error_code error;
  context.add_certificate_authority(boost::asio::buffer(pem), error);
  if (error) return Fail(ErrorCode::kInvalid, "certificate authority: " + TlsErrorText(error));
  return {};
}

void OfferHttp2(ssl::context& context) {
  // Each behind its length.
  constexpr std::string_view kProtocols = "\x02h2\x08http/1.1";
  SSL_CTX_set_alpn_protos(context.native_handle(),
                          reinterpret_cast<const unsigned char*>(kProtocols.data()),
                          kProtocols.size());
}

std::string TlsErrorText(const boost::system::error_code& error) { return error.message(); }

}  // namespace berth::net::internal
