// Package cgroup reads how much memory the memory control groups of Linux, and the limit of the address space, leave this
// process.
package cgroup
