package member

import (
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// probeEvery is how often a member checks one other. A run's tasks last
	// minutes: knowing of a loss a second sooner gains nothing.
	probeEvery = 2 * time.Second
	// probeTimeout is how long an answer may take. A worker with more kernel
	// threads than cores takes hundreds of milliseconds to schedule one; with 100 ms
	// two such workers were declared dead 38 times in 20 s. It must be less than
	// probeEvery, or a probe overlaps the next.
	probeTimeout = time.Second
	// suspicion multiplies probeEvery into how long a silent member may contradict
	// before it is dead: 12 s in a group of up to ten. In larger ones that is what
	// it takes when others agree, longestSuspicion times that when nobody does. A
	// process stopped for 10 s survives.
	suspicion        = 6
	longestSuspicion = 6
	// streamTimeout is for connecting and for each transfer over TCP, which a
	// saturated host accepts late.
	streamTimeout = 10 * time.Second
	// seekEvery is how often missing seeds are looked for: coordinators are
	// restarted within seconds, and a failed try costs one connection.
	seekEvery = 3 * time.Second
	// leaveTimeout bounds how long Drain and Leave each wait for their news to have
	// been sent. It takes four gossip rounds in a group of two, 0.8 s, two in larger
	// ones.
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
