package member

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// seek keeps the seeds among the members until ctx ends.
func (g *Group) seek(ctx context.Context, seeds func(context.Context) ([]string, error), every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var known []string
	failing := false
	for {
		if len(known) == 0 || len(g.missing(ctx, known)) > 0 {
			var err error
			if known, err = g.find(ctx, seeds); ctx.Err() != nil {
				return
			}
			// A search lasts long: only its beginning and end are news.
			switch {
			case err != nil && !failing:
				g.log.Warn("no seed of the group answers, trying on", "reason", err)
			case err == nil && failing:
				g.log.Info("a seed of the group answers", "seeds", known)
			}
			failing = err != nil
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// find finds out where the seeds are and joins the missing ones. It fails if some are missing and
// none of them answers.
func (g *Group) find(ctx context.Context, seeds func(context.Context) ([]string, error)) ([]string, error) {
	known, err := seeds(ctx)
	if err != nil {
		return nil, fmt.Errorf("member: find the seeds: %w", err)
	}
	missing := g.missing(ctx, known)
	if len(missing) == 0 {
		return known, nil
	}
	if _, err := g.list.Join(missing); err != nil {
		return known, fmt.Errorf("member: join: %w", err)
	}
	return known, nil
}

// missing lists the seeds that are neither members nor this process.
func (g *Group) missing(ctx context.Context, seeds []string) []string {
	there := map[string]bool{g.address: true}
	for _, m := range g.list.Members() {
		there[m.Address()] = true
	}
	var missing []string
	for _, seed := range seeds {
		found := false
		for _, address := range resolve(ctx, seed) {
			found = found || there[address]
		}
		if !found {
			missing = append(missing, seed)
		}
	}
	return missing
}

// resolve lists the addresses of host:port with the host as numbers, none where
// it has no such.
func resolve(ctx context.Context, seed string) []string {
	host, port, err := net.SplitHostPort(seed)
	if err != nil {
		return nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	addresses := make([]string, len(ips))
	for i, ip := range ips {
		addresses[i] = net.JoinHostPort(netip.Addr.Unmap(ip).String(), port)
	}
	return addresses
}

// logWriter passes memberlist's log on, each line one level lower: its errors are here only late
// hints.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(line []byte) (int, error) {
	level := slog.LevelDebug
	switch {
	case bytes.Contains(line, []byte("[ERR")):
		level = slog.LevelWarn
	case bytes.Contains(line, []byte("[WARN]")):
		level = slog.LevelInfo
	}
	_, text, found := bytes.Cut(line, []byte("memberlist: "))
	if !found {
		text = line
	}
	w.log.Log(context.Background(), level, "gossip: "+string(bytes.TrimSpace(text)))
	return len(line), nil
}
