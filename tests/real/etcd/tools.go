//go:build tools

// Package tools makes the programs that tests/real/build compiles dependencies of this module.
package tools

import _ "go.etcd.io/etcd/server/v3"
