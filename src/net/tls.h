#pragma once

#include <boost/asio/ssl/context.hpp>
#include <string>

#include "base/result.h"
#include "net/certificates.h"

// TLS settings that both ends share. Only the .cc files of net/ include this.
namespace berth::net::internal {

// TLS 1.2 and 1.3, without compression and session tickets.
boost::asio::ssl::context MakeContext(bool server);
// Errors name `what`.
Status UseIdentity(boost::asio::ssl::context& context, const KeyPair& identity);
Status TrustAuthority(boost::asio::ssl::context& context, const std::string& pem);
// Offers a server HTTP/2 beside HTTP/1.1 (ALPN, RFC 7301).
void OfferHttp2(boost::asio::ssl::context& context);
// All that OpenSSL tells of the last failure.
std::string TlsErrorText(const boost::system::error_code& error);

}  // namespace berth::net::internal
