package blocks

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestUnseenRequest has an owner end between the arrival of a request and its answer, and say that it
// has not looked at it: gRPC would ask again for as long as it takes. Fetch ends.
func TestUnseenRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- refuse(l) }()
	c, err := Dial(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begun := time.Now()
	err = c.Fetch(t.Context(), Ticket{Plan: "sha256:test", Stage: "smooth", Columns: 16, Precision: "float32", Hop: 1, Rows: 8}, func(int64, []byte) error { return errors.New("there are no rows") })
	if !errors.Is(err, ErrRetry) {
		t.Errorf("the fetch ended with %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the fetch took %v", took)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// refuse takes one connection, waits for the first request, and ends with the notice that it has seen
// none (RFC 9113, sections 4.1 and 6.8).
func refuse(l net.Listener) error {
	const headers = 1
	c, err := l.Accept()
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return err
	}
	defer c.Close()
	settings := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}
	goAway := []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if _, err := c.Write(settings); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, c, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return err
	}
	for {
		var frame [9]byte
		if _, err := io.ReadFull(c, frame[:]); err != nil {
			return err
		}
		size := binary.BigEndian.Uint32(frame[:4]) >> 8
		if _, err := io.CopyN(io.Discard, c, int64(size)); err != nil {
			return err
		}
		if frame[3] == headers {
			_, err := c.Write(goAway)
			return err
		}
	}
}
