package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
)

// lan is a switch with hosts, each a network namespace with its own address, whose cables carry so many bits a second in each
// direction.
type lan struct {
	bridge string // the namespace of the switch
	hosts  []host
}

type host struct{ space, address string }

// free is a free port of the host.
func (h host) free() string { return net.JoinHostPort(h.address, "0") }

func newLAN(ctx context.Context, n int, bits float64) (_ *lan, err error) {
	l := &lan{bridge: fmt.Sprintf("sharing-%d", os.Getpid())}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	sh := func(format string, a ...any) {
		line := fmt.Sprintf(format, a...)
		fields := strings.Fields(line)
		if err != nil {
			return
		}
		if out, failed := exec.CommandContext(ctx, fields[0], fields[1:]...).CombinedOutput(); failed != nil {
			err = fmt.Errorf("%s: %w\n%s", line, failed, out)
		}
	}
	sh("ip netns add %s", l.bridge)
	sh("ip -n %s link add br0 type bridge", l.bridge)
	sh("ip -n %s link set br0 up", l.bridge)
	// A token bucket holds what a cable carries in 6 ms, the longest time between two ticks of the kernel, or some large packets.
	shape := fmt.Sprintf("root tbf rate %.0fbit burst %.0f latency 50ms", bits, max(bits/8*6e-3, 256<<10))
	for i := range n {
		h := host{fmt.Sprintf("%s-%d", l.bridge, i), fmt.Sprintf("10.78.0.%d", i+1)}
		l.hosts = append(l.hosts, h)
		sh("ip netns add %s", h.space)
		sh("ip -n %s link add v%d type veth peer name eth0 netns %s", l.bridge, i, h.space)
		sh("ip -n %s link set v%d master br0 up", l.bridge, i)
		sh("ip -n %s addr add %s/24 dev eth0", h.space, h.address)
		sh("ip -n %s link set eth0 up", h.space)
		sh("ip -n %s link set lo up", h.space)
		sh("tc -n %s qdisc add dev eth0 %s", h.space, shape)
		sh("tc -n %s qdisc add dev v%d %s", l.bridge, i, shape)
	}
	return l, err
}

func (l *lan) close() {
	for _, h := range l.hosts {
		_ = exec.Command("ip", "netns", "del", h.space).Run()
	}
	_ = exec.Command("ip", "netns", "del", l.bridge).Run()
}
