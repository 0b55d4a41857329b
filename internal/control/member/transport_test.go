package member

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// TestStrangersAtGossip: strangers hold few connections, for little memory, and keep no member out.
func TestStrangersAtGossip(t *testing.T) {
	key := make([]byte, keySize)
	coordinator, _ := join(t, Options{Key: key})
	var strangers []net.Conn
	for range 100 {
		c, err := net.Dial("tcp", coordinator.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		strangers = append(strangers, c)
	}
	worker, _ := join(t, Options{Key: key, Seeds: seedsOf(coordinator)})
	eventually(t, "the worker gets in", func() bool { return sees(coordinator, worker) })
	open := len(strangers)
	for end := time.Now().Add(patience); open > mostStreams && time.Now().Before(end); {
		open = 0
		for _, c := range strangers { // under load, a deadline can pass before Read looks
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				open++
			}
		}
	}
	if open > mostStreams {
		t.Errorf("%d connections of strangers are open", open)
	}

	// A message of 20 MiB, as memberlist would hold it.
	c, err := net.Dial("tcp", coordinator.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	header := binary.BigEndian.AppendUint32([]byte{10}, 20<<20-1<<10) // 10 is an encrypted message
	if _, err := c.Write(header); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for piece := make([]byte, 64<<10); sent < 20<<20; sent += len(piece) {
		if _, err := c.Write(piece); err != nil {
			break
		}
		if sent > mostReceived { // give the other side time to close
			time.Sleep(20 * time.Millisecond)
		}
	}
	if sent >= 16<<20 {
		t.Errorf("%d bytes of a stranger were taken", sent)
	}
}

func TestBounded(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	b := &bounded{Conn: here, left: 5}
	go func() { _, _ = there.Write([]byte("0123456789")) }()
	text, err := io.ReadAll(b)
	if string(text) != "01234" || !errors.Is(err, errLong) {
		t.Errorf("%q, %v", text, err)
	}
	_ = b.Close()
}
