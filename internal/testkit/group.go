package testkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// version names the files of one version of control groups.
type version struct{ root, controller, limit, peak string }

// The versions, as the kernel's admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst have them.
var versions = []version{
	{"/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"},
	{"/sys/fs/cgroup", "", "memory.max", "memory.peak"},
}

// Group is a memory control group of Linux below that of this process. It holds programs to a limit; the kernel charges it
// with the page cache that it causes too.
type Group struct {
	dir string
	v   version
}

// NewGroup makes a group whose processes together may take so many bytes. It fails where this process may not make groups.
func NewGroup(bytes int64) (*Group, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("control group: %w", err)
	}
	var failed error
	for _, v := range versions {
		for line := range strings.Lines(string(own)) {
			part := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(part) != 3 || part[1] != v.controller {
				continue
			}
			dir, err := os.MkdirTemp(filepath.Join(v.root, part[2]), "ndls-")
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, v.limit), strconv.AppendInt(nil, bytes, 10), 0o644)
				if err == nil {
					return &Group{dir, v}, nil
				}
				err = errors.Join(err, os.Remove(dir))
			}
			failed = errors.Join(failed, err)
		}
	}
	return nil, fmt.Errorf("control group: no memory control group can be made here: %w", failed)
}

// Command is a command that moves itself into the group and becomes another.
func (g *Group) Command(command ...string) []string {
	return append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs")}, command...)
}

// Peak is the most that the group was charged with, in bytes.
func (g *Group) Peak() (int64, error) {
	b, err := os.ReadFile(filepath.Join(g.dir, g.v.peak))
	if err != nil {
		return 0, fmt.Errorf("control group: %w", err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

// Remove removes the group, whose processes must have ended.
func (g *Group) Remove() { _ = os.Remove(g.dir) }
