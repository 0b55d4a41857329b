// Package conns bounds the connections of strangers to a server, and lets a server that stops
// close the connections of callers that have not said anything, so that it need not wait for them.
//
// # Model
//
// Whoever can connect to a port takes a file descriptor of the process. A process that has none
// left cannot open its own files, and ends. So a [Set] holds a bounded number of connections of
// strangers: the next one takes the place of another. It closes the one that has been idle for
// longest, of the host that has most of them. So who comes from another host than a flood keeps its
// place, and who comes from the same host gets in. A connection is a stranger's until it has passed the
// handshake of [Credentials]; from then on it is not counted, and never closed for another.
//
// A gRPC server that is told to stop waits for connections whose handshake has not
// ended, until a timeout of up to minutes. Whoever can connect, a port scanner say,
// could keep a process from ending for that long. [Set.CloseSilent] closes the connections
// from which no byte has come, and [Set.CloseAll] all.
//
// # Memory
//
// One map entry for each open connection.
package conns

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"

	"ndls/internal/vfs"
)

// Listener accepts connections into a set.
type Listener struct {
	net.Listener
	*Set
}

// Track returns l as a Listener with room for as many strangers as this process has file
// descriptors to spare: an eighth of the free ones, at most 256. A process has few servers.
func Track(l net.Listener) *Listener { return &Listener{l, NewSet(spare())} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.Admit(c)
}

const (
	// part is the inverse of the share of free file descriptors that a set may use. mostStrangers
	// and fewestStrangers bound their number.
	part            = 8
	mostStrangers   = 256
	fewestStrangers = 4
	// unlisted is the assumed number of open files if /proc does not list them.
	unlisted = 64
)

// spare returns the number of file descriptors that a set may use.
func spare() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fewestStrangers
	}
	open := unlisted
	if list, err := vfs.ReadDir("/proc/self/fd"); err == nil {
		open = len(list)
	}
	free := int64(min(limit.Cur, 1<<32)) - int64(open)
	return int(max(fewestStrangers, min(free/part, mostStrangers)))
}

// Set holds the open connections of a server. It is safe for concurrent use.
type Set struct {
	most int

	mu    sync.Mutex
	open  map[*conn]bool
	hosts map[netip.Prefix]int // of strangers
	// strangers is the number of strangers' connections.
	strangers int
	// stopping is set once connections are closed: no more are accepted.
	stopping bool
}

// NewSet returns an empty set that holds at most so many strangers.
func NewSet(most int) *Set {
	return &Set{most: max(most, 1), open: map[*conn]bool{}, hosts: map[netip.Prefix]int{}}
}

// Admit adds an accepted connection. It may close another one for that. The caller must close the
// returned connection.
func (s *Set) Admit(c net.Conn) (net.Conn, error) {
	mine := &conn{Conn: c, of: s, host: hostOf(c.RemoteAddr()), stranger: true}
	mine.seen()
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	s.hosts[mine.host]++
	var other *conn
	if s.strangers >= s.most {
		other = s.idlest()
		s.forget(other)
	}
	s.open[mine] = true
	s.strangers++
	s.mu.Unlock()
	if other != nil {
		_ = other.Conn.Close()
	}
	return mine, nil
}

// idlest returns the stranger that has been idle for longest, of the host with most strangers.
func (s *Set) idlest() (found *conn) {
	for c := range s.open {
		if !c.stranger {
			continue
		}
		if found == nil || s.hosts[c.host] > s.hosts[found.host] ||
			s.hosts[c.host] == s.hosts[found.host] && c.last.Load() < found.last.Load() {
			found = c
		}
	}
	return found
}

// trust notes that a connection is no stranger's.
func (s *Set) trust(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[c] {
		s.known(c)
	}
}

// known takes a connection from the strangers.
func (s *Set) known(c *conn) {
	if !c.stranger {
		return
	}
	c.stranger = false
	s.strangers--
	if s.hosts[c.host]--; s.hosts[c.host] == 0 {
		delete(s.hosts, c.host)
	}
}

// forget takes a connection from the set.
func (s *Set) forget(c *conn) {
	if s.open[c] {
		s.known(c)
		delete(s.open, c)
	}
}

// CloseSilent closes the connections from which nothing has been read. From then on no
// connection is accepted.
func (s *Set) CloseSilent() { s.close(func(c *conn) bool { return !c.heard.Load() }) }

// CloseAll closes all connections. From then on none is accepted.
func (s *Set) CloseAll() { s.close(func(*conn) bool { return true }) }

func (s *Set) close(which func(*conn) bool) {
	s.mu.Lock()
	s.stopping = true
	var list []*conn
	for c := range s.open {
		if which(c) {
			list = append(list, c)
		}
	}
	s.mu.Unlock()
	for _, c := range list {
		_ = c.Close()
	}
}

// hostOf returns the host of an address: for IPv6 the network of 64 bits, because a host can have
// all its addresses.
func hostOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap()
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	host, _ := ip.WithZone("").Prefix(bits)
	return host
}

// conn is an open connection of a set.
type conn struct {
	net.Conn
	of   *Set
	host netip.Prefix
	// of.mu protects stranger.
	stranger bool
	heard    atomic.Bool  // something was read
	last     atomic.Int64 // when something was read or written
}

func (c *conn) seen() { c.last.Store(int64(time.Since(epoch))) }

// epoch is the start of the process: a time since then is monotonic.
var epoch = time.Now()

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(true)
		c.seen()
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.seen()
	}
	return n, err
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	c.of.forget(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// Credentials returns c for a server. A connection that passes its handshake is no stranger's any more.
func Credentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	return trusting{c}
}

type trusting struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (t trusting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := t.TransportCredentials.ServerHandshake(raw)
	if tracked, ok := raw.(*conn); ok && err == nil {
		tracked.of.trust(tracked)
	}
	return c, info, err
}

// Clone implements credentials.TransportCredentials.
func (t trusting) Clone() credentials.TransportCredentials {
	return trusting{t.TransportCredentials.Clone()}
}
