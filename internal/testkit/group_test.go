package testkit

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
)

// hold makes a shell hold so many MiB.
func hold(mib string) []string {
	return []string{"sh", "-c", `x=$(head -c ` + mib + `M /dev/zero | tr '\0' x); echo ${#x}`}
}

func TestLimitHolds(t *testing.T) {
	g, err := NewGroup(64 << 20)
	if err != nil {
		t.Skip(err)
	}
	defer g.Remove()
	run := func(mib string) error {
		command := g.Command(hold(mib)...)
		return exec.Command(command[0], command[1:]...).Run()
	}
	if err := run("8"); err != nil {
		t.Fatalf("8 MiB in 64: %v", err)
	}
	peak, err := g.Peak()
	if err != nil || peak < 8<<20 || peak > 64<<20 {
		t.Errorf("8 MiB held, peak %d, %v", peak, err)
	}
	var exit *exec.ExitError
	if err := run("200"); !errors.As(err, &exit) {
		t.Errorf("200 MiB in 64: %v", err)
	} else if status := exit.Sys().(syscall.WaitStatus); !status.Signaled() && status.ExitStatus() == 0 {
		t.Errorf("200 MiB in 64 ended with %v", status)
	}
	if peak, err = g.Peak(); err != nil || peak > 64<<20 {
		t.Errorf("peak %d of %d, %v", peak, 64<<20, err)
	}
}
