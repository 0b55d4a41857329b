package coordinator

import (
	"cmp"
	"time"

	"ndls/internal/control"
)

const (
	// maxMembers bounds the number of workers that the coordinator knows at a time.
	maxMembers = 10_000
	// forgottenAfter is the silence, in leases, after which a worker is forgotten.
	forgottenAfter = 10
)

// member is a worker that has joined.
type member struct {
	control.Hello
	seen  time.Time
	speed speed
	polls int  // waiting calls of Next
	told  bool // it has heard that the run has ended
	left  bool // it ended with its last task and asks for no other
	drain bool // it gets no further task, see DrainWorker
}

// members are the workers that have joined, by name.
type members struct {
	all map[string]*member
	ttl time.Duration // the silence after which a worker counts as absent
}

// seen notes a sign of life. It returns nil for a worker that has not joined.
func (m members) seen(worker string) *member {
	x := m.all[worker]
	if x != nil {
		x.seen = time.Now()
	}
	return x
}

// here reports whether a worker has given a sign of life lately and has not left.
func (m members) here(x *member) bool {
	return !x.left && (x.polls > 0 || time.Since(x.seen) <= m.ttl)
}

// present yields the workers that are here.
func (m members) present(yield func(*member) bool) {
	for _, x := range m.all {
		if m.here(x) && !yield(x) {
			return
		}
	}
}

// live counts the present workers.
func (m members) live() (n int) {
	for range m.present {
		n++
	}
	return n
}

// peerOf returns the address at which another present worker serves rows. It takes the next worker by name, so that not all workers ask the
// same one.
func (m members) peerOf(worker string) string {
	var first, next *member
	for x := range m.present {
		if x.Worker == worker || x.Blocks == "" {
			continue
		}
		if first == nil || x.Worker < first.Worker {
			first = x
		}
		if x.Worker > worker && (next == nil || x.Worker < next.Worker) {
			next = x
		}
	}
	if next = cmp.Or(next, first); next == nil {
		return ""
	}
	return next.Blocks
}

// forget drops workers without a task that were silent for long, or that said that they end and were silent for a lease. Each started
// worker has a new name, so that their number would grow otherwise.
func (m members) forget(l *leases) {
	for name, x := range m.all {
		silence := forgottenAfter * m.ttl
		if x.left {
			silence = m.ttl
		}
		if !m.here(x) && time.Since(x.seen) > silence && l.of(name) == nil {
			delete(m.all, name)
			delete(l.holds, name)
		}
	}
}
