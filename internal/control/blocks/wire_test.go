package blocks

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
)

// counted is a connection whose bytes are counted, both ways.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// TestBytesOnTheWire counts what moving rows costs beside the rows: headers,
// checksums, and what the two sides say to each other.
func TestBytesOnTheWire(t *testing.T) {
	data := randomBytes(14, 16<<20)
	for _, columns := range []int{16, 128} {
		address, _ := serve(t, newOwner(data, int64(len(data)/columns/4)))
		var bytes atomic.Int64
		c := dial(t, address, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", address)
			return counted{conn, &bytes}, err
		}))
		ticket := testTicket(data)
		ticket.Columns, ticket.Rows = columns, int64(len(data)/columns/4)
		if _, err := collect(t.Context(), c, ticket); err != nil {
			t.Fatal(err)
		}
		excess := float64(bytes.Load())/float64(len(data)) - 1
		t.Logf("%d columns: %.2f %% beside the rows", columns, 100*excess)
		if excess > 0.005 {
			t.Errorf("%d columns: %d bytes for %d of rows", columns, bytes.Load(), len(data))
		}
	}
}
