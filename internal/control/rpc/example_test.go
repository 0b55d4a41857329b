package rpc_test

import (
	"context"
	"fmt"
	"net"

	"ndls/internal/control"
	"ndls/internal/control/rpc"
)

// ended is a coordinator whose run is over.
type ended struct{ rpc.Service }

func (ended) Next(context.Context, string) (control.Lease, error) {
	return control.Lease{}, control.ErrEnded
}

func Example() {
	security, err := rpc.TokenSecurity(rpc.MakeToken(), "the example")
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- rpc.Serve(ctx, listener, ended{}, security) }()

	client, err := rpc.Dial(ctx, rpc.At(listener.Addr().String()), security, rpc.Options{})
	if err != nil {
		panic(err)
	}
	_, err = client.Next(ctx, "worker-1")
	fmt.Println(err)
	client.Close()
	stop()
	fmt.Println(<-served)
	// Output:
	// rpc: next: the run has ended
	// <nil>
}
