package rpc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/resolver"
)

const (
	scheme = "ndls"
	// askPause is the least time between two questions for the address.
	askPause = 200 * time.Millisecond
)

// Locate returns the address of the coordinator, as host:port. It is called before the first
// connection and after each that broke or could not be made.
type Locate func(ctx context.Context) (string, error)

// At returns a Locate for a coordinator whose address does not change.
func At(address string) Locate {
	return func(context.Context) (string, error) { return address, nil }
}

// builder makes gRPC call locate for addresses.
type builder struct {
	ctx    context.Context
	locate Locate
}

func (builder) Scheme() string { return scheme }

func (b builder) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	ctx, cancel := context.WithCancel(b.ctx)
	a := &asker{cc: cc, locate: b.locate, again: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	go a.run(ctx)
	return a, nil
}

// asker tells a connection the address.
type asker struct {
	cc     resolver.ClientConn
	locate Locate
	again  chan struct{}
	cancel context.CancelFunc
	done   chan struct{}
}

func (a *asker) run(ctx context.Context) {
	defer close(a.done)
	for {
		if a.ask(ctx) {
			select {
			case <-a.again:
			case <-ctx.Done():
			}
		}
		select {
		case <-time.After(askPause):
		case <-ctx.Done():
			return
		}
	}
}

// ask passes on the answer of locate, and reports whether that is an address.
func (a *asker) ask(ctx context.Context) bool {
	address, err := a.locate(ctx)
	if err != nil {
		a.cc.ReportError(fmt.Errorf("looking for the coordinator: %w", err))
		return false
	}
	// An error means that gRPC could not use the address; it asks again.
	_ = a.cc.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: address}}})
	return true
}

// ResolveNow is called when gRPC asks again. It must not wait.
func (a *asker) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case a.again <- struct{}{}:
	default:
	}
}

func (a *asker) Close() {
	a.cancel()
	<-a.done
}
