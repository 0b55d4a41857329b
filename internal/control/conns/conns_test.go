package conns

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// TestClose: a connection that has said nothing is closed first, then all are.
func TestClose(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	l := Track(inner)
	dial := func() (there net.Conn) {
		there, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { there.Close() })
		here, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { here.Close() })
		if len(l.open) == 2 {
			if _, err := there.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := here.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		return there
	}
	silent, spoke := dial(), dial()
	closed := func(c net.Conn, within time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(within))
		_, err := c.Read(make([]byte, 1))
		return err == io.EOF
	}
	l.CloseSilent()
	if !closed(silent, time.Minute) || closed(spoke, 100*time.Millisecond) {
		t.Error("the silent connection is open, or the other is not")
	}
	l.CloseAll()
	if !closed(spoke, time.Minute) || len(l.open) > 0 {
		t.Errorf("%d connections are open", len(l.open))
	}
}

// from is a connection that comes from an address, of which it notes that it was closed.
type from struct {
	net.Conn
	address string
	closed  *[]string
	name    string
}

func (f from) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(f.address), Port: 1}
}
func (f from) Read(p []byte) (int, error) { return len(p), nil }
func (f from) Close() error {
	*f.closed = append(*f.closed, f.name)
	return nil
}

// TestStrangersTakePlaces: the connection that is closed for another one is the idlest of the host that has most.
func TestStrangersTakePlaces(t *testing.T) {
	var closed []string
	s := NewSet(4)
	admit := func(name, address string) net.Conn {
		c, err := s.Admit(from{address: address, closed: &closed, name: name})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		return c
	}
	speak := func(c net.Conn) {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	owner := admit("owner", "10.0.0.1")
	a := admit("a", "10.0.0.2")
	admit("b", "10.0.0.2")
	admit("c", "10.0.0.2")
	speak(a)
	admit("d", "10.0.0.2") // b is idlest of the host that has most
	admit("e", "10.0.0.3") // then c
	if !slices.Equal(closed, []string{"b", "c"}) {
		t.Fatalf("%v were closed", closed)
	}
	_ = a.Close()
	admit("f", "10.0.0.4")
	admit("g", "10.0.0.5") // all hosts have one: the owner is the idlest
	if !slices.Equal(closed, []string{"b", "c", "a", "owner"}) {
		t.Fatalf("%v were closed", closed)
	}
	_ = owner.Close() // again
	if s.strangers != 4 || len(s.open) != 4 || len(s.hosts) != 4 {
		t.Errorf("%d strangers, %d connections, hosts %v", s.strangers, len(s.open), s.hosts)
	}

	// Addresses of one network of IPv6 are one host's.
	closed = nil
	s = NewSet(3)
	admit("owner", "2001:db8:1::1")
	admit("a", "2001:db8:2::1")
	admit("b", "2001:db8:2::2")
	admit("c", "2001:db8:2::3")
	if !slices.Equal(closed, []string{"a"}) {
		t.Errorf("%v were closed", closed)
	}
}

// refusing is a handshake that fails if it is told to.
type refusing struct {
	credentials.TransportCredentials
	err error
}

func (r refusing) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return c, nil, r.err
}

// TestMembersKeepTheirPlaces: who has passed the handshake is never closed for another, and who has not is.
func TestMembersKeepTheirPlaces(t *testing.T) {
	var closed []string
	s := NewSet(2)
	admit := func(name string, err error) {
		c, failed := s.Admit(from{address: "10.0.0.1", closed: &closed, name: name})
		if failed != nil {
			t.Fatal(failed)
		}
		if _, _, got := Credentials(refusing{insecure.NewCredentials(), err}).ServerHandshake(c); !errors.Is(got, err) {
			t.Fatalf("the handshake says %v", got)
		}
		time.Sleep(time.Millisecond)
	}
	for _, name := range []string{"1", "2", "3", "4"} {
		admit(name, nil)
	}
	for _, name := range []string{"a", "b", "c"} {
		admit(name, context.Canceled)
	}
	if !slices.Equal(closed, []string{"a"}) || s.strangers != 2 || len(s.open) != 6 {
		t.Errorf("%v were closed; %d strangers of %d", closed, s.strangers, len(s.open))
	}
}

// TestSpare: a set takes an eighth of the descriptors that are free.
func TestSpare(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct{ files, fewest, most int }{{256, 16, 32}, {64, fewestStrangers, 8}, {int(limit.Max), 32, mostStrangers}} {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(c.files), Max: limit.Max}); err != nil {
			t.Skip(err)
		}
		if got := spare(); got < c.fewest || got > c.most {
			t.Errorf("%d strangers of %d files", got, c.files)
		}
	}
}
