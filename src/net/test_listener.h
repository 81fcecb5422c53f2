#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace berth::net {

// A socket that listens on this machine alone, at a port that was free; whose it is closes it.
struct Listener {
  int socket = -1;
  uint16_t port = 0;
};

inline Listener ListenHere() {
  Listener out{.socket = socket(AF_INET, SOCK_STREAM, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(out.socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(out.socket, 8), 0);
  EXPECT_EQ(getsockname(out.socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  out.port = ntohs(address.sin_port);
  return out;
}

}  // namespace berth::net
