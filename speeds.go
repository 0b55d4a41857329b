package ndls

import (
	"context"
	"errors"
	"fmt"

	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/vfs"
	"ndls/machine"
)

// Speeds say how fast a machine is at what stages are made of.
type Speeds = control.Speeds

// measure measures this machine with the memory, threads and kernel of r, and the disk of its
// folder for temporary files.
func measure(ctx context.Context, r control.Resources) (s Speeds, err error) {
	made, err := vfs.MkdirAll(r.Scratch, 0o777)
	if err != nil {
		return s, err
	}
	defer func() {
		for _, folder := range made {
			err = errors.Join(err, vfs.RemoveAll(folder))
		}
	}()
	b, err := mem.NewBudget(r.Memory)
	if err != nil {
		return s, err
	}
	defer b.Close()
	s, err = machine.Measure(ctx, b, machine.Options{Folder: r.Scratch, Threads: r.Threads, Kernel: r.Kernel})
	if err != nil {
		err = fmt.Errorf("measuring the machine with a file in %s: %w", r.Scratch, err)
	}
	return s, err
}
