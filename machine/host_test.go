package machine

import "testing"

func TestProcessors(t *testing.T) {
	for _, c := range []struct {
		name, cpuinfo, model string
		online               int
	}{
		{"amd64", "processor\t: 0\nmodel name\t: A B\nflags\t\t: fpu\n\nprocessor\t: 1\nmodel name\t: C\n", "A B", 2},
		{"arm64", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\nCPU revision\t: 1\n", "implementer 0x41, part 0xd40", 1},
		{"unknown", "hello\n", "", 0},
	} {
		if model, online := processors(c.cpuinfo); model != c.model || online != c.online {
			t.Errorf("%s: %q, %d, want %q, %d", c.name, model, online, c.model, c.online)
		}
	}
}

func TestHost(t *testing.T) {
	h := Host()
	t.Logf("%+v", *h)
	if h.Processors < 1 || h.Memory < 1<<28 || h.MemoryLimit >= h.Memory || h.KernelRelease == "" {
		t.Error("the kernel tells more")
	}
}
