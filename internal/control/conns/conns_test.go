package conns

import (
	"io"
	"net"
	"testing"
	"time"
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
	closed := func(c net.Conn) bool {
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := c.Read(make([]byte, 1))
		return err == io.EOF
	}
	l.CloseSilent()
	if !closed(silent) || closed(spoke) {
		t.Error("the silent connection is open, or the other is not")
	}
	l.CloseAll()
	if !closed(spoke) || len(l.open) > 0 {
		t.Errorf("%d connections are open", len(l.open))
	}
}
