// Package cgroup reads the memory control groups of Linux: how much memory they
// leave this process, and how to run a command in one, for tests and measurements
// that hold programs to a limit. The kernel charges a group with the page cache
// that it causes too.
//
// # Not supported
//
// Systems where the process may not make groups below its own; [New] says so.
package cgroup
