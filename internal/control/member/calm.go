package member

import (
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// probeEvery is the interval at which a member checks one other. A run's tasks last minutes:
	// knowing of a loss a second sooner gains nothing.
	probeEvery = 2 * time.Second
	// probeTimeout is the time for an answer. A worker with more kernel threads than cores needs
	// hundreds of milliseconds to schedule one; with 100 ms two such workers were declared dead 38
	// times in 20 s. It must be less than probeEvery, or a probe overlaps the next.
	probeTimeout = time.Second
	// suspicion times probeEvery is the time in which a silent member may contradict before it is
	// dead: 12 s in a group of up to ten. In larger groups that is the time if others agree, and
	// longestSuspicion times as long if nobody does. A process stopped for 10 s survives.
	suspicion        = 6
	longestSuspicion = 6
	// streamTimeout bounds connecting and each transfer over TCP, which a saturated host accepts
	// late.
	streamTimeout = 10 * time.Second
	// seekEvery is the interval at which missing seeds are looked for: coordinators are restarted
	// within seconds, and a failed attempt costs one connection.
	seekEvery = 3 * time.Second
	// leaveTimeout bounds the time that Drain and Leave each wait until their news is sent. That
	// needs four gossip rounds in a group of two, 0.8 s, and two rounds in larger groups.
	leaveTimeout = 3 * time.Second
)

func calm() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.ProbeInterval = probeEvery
	c.ProbeTimeout = probeTimeout
	c.SuspicionMult = suspicion
	c.SuspicionMaxTimeoutMult = longestSuspicion
	c.TCPTimeout = streamTimeout
	return c
}
