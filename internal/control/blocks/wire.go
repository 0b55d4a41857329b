package blocks

import (
	"net"
	"sync/atomic"
)

// Wire is a listener that counts the bytes of its connections, in both directions, including what
// gRPC and TLS add. Each byte is counted by its owner's wire alone.
type Wire struct {
	net.Listener
	bytes atomic.Int64
}

// Bytes returns the number of bytes so far.
func (w *Wire) Bytes() int64 { return w.bytes.Load() }

// Accept implements net.Listener.
func (w *Wire) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return wireConn{c, w}, nil
}

type wireConn struct {
	net.Conn
	wire *Wire
}

func (c wireConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.wire.bytes.Add(int64(n))
	return n, err
}

func (c wireConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.wire.bytes.Add(int64(n))
	return n, err
}
