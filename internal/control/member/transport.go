package member

import (
	"errors"
	"log"
	"net"
	"sync"

	"github.com/hashicorp/memberlist"

	"ndls/internal/control/conns"
)

const (
	// mostStreams bounds the open connections of others. Members exchange what they know within
	// milliseconds, and repeat what fails.
	mostStreams = 16
	// mostReceived bounds the bytes of one connection: a member tells less than 700 bytes of
	// another, and memberlist would accept 20 MiB from anybody who can connect.
	mostReceived = 4 << 20
	// ports is the number of attempts to find a port that is free for TCP and UDP.
	ports = 10
)

// transport is memberlist's transport with bounded incoming connections: they belong to strangers
// until their first message is decrypted.
type transport struct {
	*memberlist.NetTransport
	streams chan net.Conn
	open    *conns.Set
	// stop is closed when nobody reads what arrives any more, gone when nothing arrives any more.
	stop, gone chan struct{}
	closing    sync.Once
	owned      sync.WaitGroup
}

// create makes the list of members of c, over bounded connections unless a test brings others.
func create(c *memberlist.Config) (*memberlist.Memberlist, error) {
	if c.Transport != nil {
		return memberlist.Create(c)
	}
	t, err := listen(c)
	if err != nil {
		return nil, err
	}
	c.Transport = t
	list, err := memberlist.Create(c)
	if err != nil {
		return nil, errors.Join(err, t.Shutdown())
	}
	return list, nil
}

// listen opens the ports of c, and sets the port of c if it was 0.
func listen(c *memberlist.Config) (*transport, error) {
	logger := c.Logger
	if logger == nil {
		logger = log.New(c.LogOutput, "", 0)
	}
	o := &memberlist.NetTransportConfig{BindAddrs: []string{c.BindAddr}, BindPort: c.BindPort, Logger: logger}
	network, err := memberlist.NewNetTransport(o)
	for tries := 1; err != nil && c.BindPort == 0 && tries < ports; tries++ {
		network, err = memberlist.NewNetTransport(o)
	}
	if err != nil {
		return nil, err
	}
	if c.BindPort == 0 {
		c.BindPort = network.GetAutoBindPort()
		c.AdvertisePort = c.BindPort
	}
	t := &transport{
		NetTransport: network, streams: make(chan net.Conn), open: conns.NewSet(mostStreams), stop: make(chan struct{}),
		gone: make(chan struct{}),
	}
	t.owned.Go(t.pass)
	return t, nil
}

// pass passes the connections on, as far as they are within the bound. Between stop and gone it
// drops what arrives, for which the network would wait.
func (t *transport) pass() {
	stop, dropped := t.stop, (<-chan *memberlist.Packet)(nil)
	for {
		select {
		case <-t.gone:
			return
		case <-stop:
			stop, dropped = nil, t.PacketCh()
		case <-dropped:
		case c := <-t.NetTransport.StreamCh():
			admitted, err := t.open.Admit(&bounded{Conn: c, left: mostReceived})
			if err != nil {
				continue
			}
			select {
			case t.streams <- admitted:
			case <-t.stop:
				_ = admitted.Close()
			}
		}
	}
}

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// Shutdown implements memberlist.Transport. It may be called more than once.
func (t *transport) Shutdown() (err error) {
	t.closing.Do(func() {
		close(t.stop)
		err = t.NetTransport.Shutdown()
		close(t.gone)
		t.owned.Wait()
		t.open.CloseAll()
	})
	return err
}

// bounded is a connection from which a bounded number of bytes can be read.
type bounded struct {
	net.Conn
	left int
}

var errLong = errors.New("a member sends more than members have to tell")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
