package blocks_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"ndls/internal/control/blocks"
)

// zeros owns rows of zeros at any hop.
type zeros struct{}

func (zeros) Rows(_ context.Context, t blocks.Ticket, send func(int64, []byte) error) error {
	return send(t.Row, make([]byte, t.Rows*int64(t.RowBytes())))
}

func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- blocks.Serve(ctx, listener, zeros{}) }()

	owner, err := blocks.Dial(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	ticket := blocks.Ticket{Plan: "sha256:…", Stage: "smooth", Columns: 16, Precision: "float32", Hop: 3, Row: 100, Rows: 50}
	err = owner.Fetch(ctx, ticket, func(first int64, rows []byte) error {
		fmt.Println(len(rows), "bytes from row", first)
		return nil
	})
	fmt.Println(ticket, err)

	cancel()
	fmt.Println(owner.Close(), <-served)
	// Output:
	// 3200 bytes from row 100
	// rows 100 to 150 of smooth, hop 3, 16 columns from panel 0 <nil>
	// <nil> <nil>
}
