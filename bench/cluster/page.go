package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// watchedJob takes its time in passes of the LSI stage, whose curve the page shows.
func (s *settings) watchedJob(dir string) []string {
	return []string{
		"run", "--run", dir, "--memory", s.memory, "--dataset", s.graph(128), "--epsilon", "0.0005", "--kmax", "250",
		"--runs", "1", "--epochs", "10", "--quiet",
	}
}

// plain runs the job without a page.
func (s *settings) plain(ctx context.Context, dir string) error {
	return s.run(ctx, "", s.watchedJob(dir)...)
}

// watched runs the job with a page, and listens to its events.
func (s *settings) watched(ctx context.Context, dir string) error {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return err
	}
	processes, ctx := errgroup.WithContext(ctx)
	processes.Go(func() error { return s.run(ctx, "", append(s.watchedJob(dir), "--http", address)...) })
	processes.Go(func() error { return listen(ctx, "http://"+address+"/events") })
	return processes.Wait()
}

// listen reads all events of a run, from when its page is there to the end of the run.
func listen(ctx context.Context, url string) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil || response.StatusCode == http.StatusServiceUnavailable { // the page is not there yet
			if err == nil {
				response.Body.Close()
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
				continue
			}
		}
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err == nil && (n == 0 || response.StatusCode != http.StatusOK) {
			err = fmt.Errorf("%s had no events: %s", url, response.Status)
		}
		return err
	}
}
