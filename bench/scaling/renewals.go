package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"ndls/catalog"
	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/control/rpc"
	"ndls/internal/storage"
	"ndls/plan"
)

// renewals measures a coordinator with many workers, each with a connection of its own on
// loopback, which renew their leases every second: ten times as often as they do with a lease of
// 30 s.
func renewals(ctx context.Context, w io.Writer, dir string, workers []int, lasting time.Duration) error {
	header(w, []string{"workers", "what", "calls", "median, ms", "99 %, ms", "longest, ms"})
	for _, n := range workers {
		calls, err := renewal(ctx, dir, n, lasting)
		if err != nil {
			return err
		}
		for _, x := range calls.list() {
			slices.Sort(x.took)
			at := func(share float64) string {
				return fmt.Sprintf("%.2f", milliseconds(x.took[int(share*float64(len(x.took)-1))]))
			}
			line(w, []string{fmt.Sprint(n), x.what, fmt.Sprint(len(x.took)), at(0.5), at(0.99), at(1)})
		}
	}
	return nil
}

// timings are the times of calls, by what they are.
type timings struct {
	mu   sync.Mutex
	took map[string][]time.Duration
}

type timing struct {
	what string
	took []time.Duration
}

// callOrder is the order in which calls are printed.
var callOrder = []string{"join", "lease", "renew", "commit", "finish", "status"}

func (t *timings) list() (all []timing) {
	for _, what := range callOrder {
		if took := t.took[what]; len(took) > 0 {
			all = append(all, timing{what, took})
		}
	}
	return all
}

// of makes a call and notes how long it took.
func (t *timings) of(what string, call func() error) error {
	begun := time.Now()
	err := call()
	took := time.Since(begun)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took[what] = append(t.took[what], took)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// told is a scheduler that also answers people.
type told struct{ *coordinator.Scheduler }

// Status implements rpc.Service.
func (t told) Status(context.Context) ([]byte, error) {
	s := t.Scheduler.Status()
	return fmt.Appendf(nil, "%d", len(s.Workers)), nil
}

func renewal(ctx context.Context, dir string, workers int, lasting time.Duration) (_ *timings, err error) {
	if dir, err = os.MkdirTemp(dir, "renewals-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	store, err := storage.NewLocal(dir)
	if err != nil {
		return nil, err
	}
	journal, err := coordinator.OpenJournal(ctx, store)
	if err != nil {
		return nil, err
	}
	cat, err := catalog.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	s, err := coordinator.NewScheduler(ctx, journal, cat, plan.Default(), coordinator.Options{Version: version})
	if err != nil {
		return nil, err
	}
	security, err := rpc.TokenSecurity(rpc.MakeToken(), "memory")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- rpc.Serve(serving, listener, told{s}, security) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	var tasks []control.Task
	for i := range workers {
		tasks = append(tasks, control.Task{Stage: control.Smooth, Part: control.Columns, First: i, Last: i + 1})
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(serving, tasks)
		ended <- err
	}()
	calls := &timings{took: map[string][]time.Duration{}}
	var working sync.WaitGroup
	failed := make(chan error, workers)
	for i := range workers {
		working.Go(func() {
			if err := renews(serving, rpc.At(listener.Addr().String()), security, calls, i, lasting); err != nil {
				failed <- err
			}
		})
	}
	working.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	if err := <-ended; err != nil {
		return nil, err
	}
	if lost := s.Losses(); len(lost) > 0 {
		return nil, fmt.Errorf("%d leases were lost, the first: %+v", len(lost), lost[0])
	}
	return calls, nil
}

// renews is a worker that has a task for a while and does nothing but renew it.
func renews(ctx context.Context, where rpc.Locate, security *rpc.Security, calls *timings, i int, lasting time.Duration) error {
	client, err := rpc.Dial(ctx, where, security, rpc.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	name := fmt.Sprint("w", i)
	if err := calls.of("join", func() error { _, err := client.Join(ctx, control.Hello{Worker: name, Version: version}); return err }); err != nil {
		return err
	}
	var l control.Lease
	if err := calls.of("lease", func() (err error) { l, err = client.Next(ctx, name); return err }); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	time.Sleep(time.Duration(i%1000) * time.Millisecond) // workers renew at different moments
	for end := time.Now().Add(lasting); time.Now().Before(end); <-tick.C {
		p := control.Progress{What: "hops", Unit: "hops", Done: 1, Total: 2}
		if err := calls.of("renew", func() error { return client.Renew(ctx, l.Fencing, p) }); err != nil {
			return err
		}
		if i == 0 {
			if err := calls.of("status", func() error { _, err := client.Status(ctx); return err }); err != nil {
				return err
			}
		}
	}
	change := control.Change{Added: []catalog.Entry{entry(i)}}
	if err := calls.of("commit", func() error { return client.Commit(ctx, l.Fencing, change) }); err != nil {
		return err
	}
	return calls.of("finish", func() error {
		return client.Finish(ctx, l.Fencing, control.Outcome{Report: &control.StageReport{Stage: control.Smooth, Seconds: 1}})
	})
}
