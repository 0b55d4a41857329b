// Package conns lets a server that stops close the connections of callers that have not
// said anything, so that it need not wait for them.
//
// # Model
//
// A gRPC server that is told to stop waits for connections whose handshake has not
// ended, until a timeout of up to minutes. Whoever can connect, a port scanner say,
// could keep a process from ending for that long. A [Listener] lists its open
// connections: [Listener.CloseSilent] closes those from which no byte has come, and
// [Listener.CloseAll] all.
//
// # Memory
//
// One map entry for each open connection.
package conns

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// Listener lists its open connections. It is safe for concurrent use.
type Listener struct {
	net.Listener
	mu   sync.Mutex
	open map[*conn]bool
	// stopping is set once connections are closed: no more are accepted.
	stopping bool
}

// Track returns l as a Listener.
func Track(l net.Listener) *Listener { return &Listener{Listener: l, open: map[*conn]bool{}} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tracked := &conn{Conn: c, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	l.open[tracked] = true
	return tracked, nil
}

// CloseSilent closes the connections from which nothing has been read. From then on no
// connection is accepted.
func (l *Listener) CloseSilent() { l.close(func(c *conn) bool { return !c.heard.Load() }) }

// CloseAll closes all connections. From then on none is accepted.
func (l *Listener) CloseAll() { l.close(func(*conn) bool { return true }) }

func (l *Listener) close(which func(*conn) bool) {
	l.mu.Lock()
	l.stopping = true
	var list []*conn
	for c := range l.open {
		if which(c) {
			list = append(list, c)
		}
	}
	l.mu.Unlock()
	for _, c := range list {
		_ = c.Close()
	}
}

// conn is an open connection of a listener.
type conn struct {
	net.Conn
	of    *Listener
	heard atomic.Bool // something was read
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
