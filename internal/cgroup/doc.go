// Package cgroup runs commands in memory control groups of Linux, for tests and
// measurements that hold programs to a limit: the kernel charges a group with
// the page cache that it causes too.
//
// # Not supported
//
// Systems where the process may not make groups below its own; [New] says so.
package cgroup
