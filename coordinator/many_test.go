package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
)

// TestMembersThatLeaveAreForgotten: who said that it ends is no longer listed after a lease,
// who fell silent after ten, with nobody joining meanwhile.
func TestMembersThatLeaveAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		s := c.start()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _, _ = s.Run(ctx, c.tasks) })
		defer running.Wait()
		defer cancel()
		for _, name := range []string{"leaves", "falls silent"} {
			if _, err := s.Join(ctx, control.Hello{Worker: name, Version: "1"}); err != nil {
				t.Fatal(err)
			}
		}
		l, err := s.Next(ctx, "leaves")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Finish(ctx, l.Fencing, control.Outcome{Kind: control.Drained}); err != nil {
			t.Fatal(err)
		}
		for after, want := range []int{2, 1, 0} {
			if got := len(s.Status().Workers); got != want {
				t.Errorf("%d workers are listed where %d are to be", got, want)
			}
			time.Sleep([]time.Duration{testTTL * 3 / 2, forgottenAfter * testTTL, 0}[after])
		}
	})
}

// TestIdleWorkersSleep: a thousand workers that wait for a task look for one when one is
// free, and not whenever another worker begins or ends one.
func TestIdleWorkersSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 20)
		s := c.start()
		ctx, cancel := context.WithCancel(t.Context())
		var running, waiting sync.WaitGroup
		running.Go(func() { _, _ = s.Run(ctx, c.tasks) })
		defer running.Wait()
		defer waiting.Wait()
		defer cancel()
		join := func(name string) {
			if _, err := s.Join(ctx, control.Hello{Worker: name, Version: "1"}); err != nil {
				t.Error(err)
			}
		}
		var busy []uint64
		for i := range c.tasks {
			join(fmt.Sprint("busy", i))
			l, err := s.Next(ctx, fmt.Sprint("busy", i))
			if err != nil {
				t.Fatal(err)
			}
			busy = append(busy, l.Fencing)
		}
		const idle = 1000
		got := make(chan string, idle)
		for i := range idle {
			join(fmt.Sprint("idle", i))
			waiting.Go(func() {
				if _, err := s.Next(ctx, fmt.Sprint("idle", i)); err == nil {
					got <- fmt.Sprint("idle", i)
				}
			})
		}
		synctest.Wait()
		s.mu.Lock()
		before := s.offered
		s.mu.Unlock()
		for _, f := range busy[1:] {
			if err := s.Commit(ctx, f, control.Change{}); err != nil {
				t.Fatal(err)
			}
			if err := s.Finish(ctx, f, reported(1)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		s.mu.Lock()
		woken := before != s.offered
		s.mu.Unlock()
		if woken || len(got) > 0 {
			t.Errorf("idle workers were woken: %v; %d have a task", woken, len(got))
		}
		if err := s.Finish(ctx, busy[0], control.Outcome{Kind: control.Drained}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(got) != 1 {
			t.Errorf("%d idle workers have the task that was given back", len(got))
		}
	})
}

// TestSlowStoreAnswers has a store whose every call takes a second: who asks whether this
// coordinator leads, asks for the status, renews a lease or joins waits for none of them, and
// no lease is lost.
func TestSlowStoreAnswers(t *testing.T) {
	t.Parallel()
	const quick = time.Second / 2 // half of what the store takes for a call
	c := newCluster(t, 3)
	c.o.Lease = 3 * time.Second
	store := &slowStore{Store: c.store}
	s := c.startOn(store)
	store.slow.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	var running, work sync.WaitGroup
	running.Go(func() { _, _ = s.Run(ctx, c.tasks) })
	defer running.Wait()
	defer cancel()
	timed := func(what string, do func() error) {
		begun := time.Now()
		if err := do(); err != nil || time.Since(begun) > quick {
			t.Errorf("%s took %v: %v", what, time.Since(begun), err)
		}
	}
	done := make(chan struct{})
	for i := range c.tasks {
		name := fmt.Sprint("w", i)
		timed("joining", func() error {
			_, err := s.Join(ctx, control.Hello{Worker: name, Version: "1", Holds: []string{"a"}})
			return err
		})
		work.Go(func() {
			l, err := s.Next(ctx, name)
			if err != nil {
				t.Error(err)
				return
			}
			ended := make(chan struct{})
			var renewing sync.WaitGroup
			renewing.Go(func() {
				for {
					select {
					case <-ended:
						return
					case <-time.After(s.o.Lease / 3):
						timed("renewing", func() error { return s.Renew(ctx, l.Fencing, control.Progress{}) })
					}
				}
			})
			file := ofRun(catalog.Entry{Kind: catalog.KindSmoothedTile, Path: fmt.Sprintf("smoothed/tiles/tile-00000-%05d.f32", i), Rows: 1})
			err = s.Commit(ctx, l.Fencing, control.Change{Added: []catalog.Entry{file}})
			close(ended)
			renewing.Wait()
			if err := errors.Join(err, s.Finish(ctx, l.Fencing, reported(1))); err != nil {
				t.Error(err)
			}
		})
	}
	go func() { work.Wait(); close(done) }()
	for asked := 0; ; asked++ {
		timed("the status", func() error { s.Status(); return nil })
		timed("the health", func() error { s.Leading(); return nil })
		select {
		case <-done:
			if st := s.Status(); len(st.Losses) > 0 || st.Tasks.Done != len(c.tasks) || asked < 20 || store.calls.Load() < 5 {
				t.Errorf("%+v, lost %+v, asked %d times, %d calls", st.Tasks, st.Losses, asked, store.calls.Load())
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// slowStore takes a second for each call once it is slow.
type slowStore struct {
	storage.Store
	slow  atomic.Bool
	calls atomic.Int64
}

func (s *slowStore) wait() {
	if s.slow.Load() {
		s.calls.Add(1)
		time.Sleep(time.Second)
	}
}

func (s *slowStore) Create(ctx context.Context, name string) (storage.Writer, error) {
	s.wait()
	return s.Store.Create(ctx, name)
}

func (s *slowStore) CreateNew(ctx context.Context, name string) (storage.Writer, error) {
	s.wait()
	return s.Store.CreateNew(ctx, name)
}

func (s *slowStore) Open(ctx context.Context, name string) (storage.Reader, error) {
	s.wait()
	return s.Store.Open(ctx, name)
}

func (s *slowStore) Stat(ctx context.Context, name string) (storage.Info, error) {
	s.wait()
	return s.Store.Stat(ctx, name)
}

func (s *slowStore) List(ctx context.Context, prefix string) ([]storage.Info, error) {
	s.wait()
	return s.Store.List(ctx, prefix)
}

func (s *slowStore) Remove(ctx context.Context, name string) error {
	s.wait()
	return s.Store.Remove(ctx, name)
}
