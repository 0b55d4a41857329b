package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ndls/internal/control/rpc"
	"ndls/internal/storage"
)

// addressName is where a coordinator says how it is reached, in the run directory.
const addressName = "cluster/coordinator.json"

// address is what it says.
type address struct {
	RPC     string    `json:"address"`
	Gossip  string    `json:"gossip"`
	Started time.Time `json:"started"`
}

// write replaces the address in the run directory.
func (a address) write(ctx context.Context, store storage.Store) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	w, err := store.Create(ctx, addressName)
	if err != nil {
		return fmt.Errorf("writing %s: %w", addressName, err)
	}
	defer w.Abort()
	if _, err := w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("writing %s: %w", addressName, err)
	}
	if _, err := w.Commit(ctx); err != nil {
		return fmt.Errorf("writing %s: %w", addressName, err)
	}
	return nil
}

// readAddress finds how the coordinator of a run is reached.
func readAddress(ctx context.Context, store storage.Store) (a address, err error) {
	r, err := store.Open(ctx, addressName)
	if err != nil {
		return a, fmt.Errorf("no coordinator has said how it is reached: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	text, err := io.ReadAll(io.NewSectionReader(r, 0, min(r.Size(), 1<<16)))
	if err != nil {
		return a, fmt.Errorf("reading %s: %w", addressName, err)
	}
	if err := json.Unmarshal(text, &a); err != nil || a.RPC == "" {
		return a, fmt.Errorf("%s in %s is damaged; start the coordinator again", addressName, store.URI())
	}
	return a, nil
}

// reachable is an address that is listened on as others see it: where that is
// every interface, the host's name.
func reachable(l net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(l.String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

// loopback is where only this host can connect, at a free port.
const loopback = "127.0.0.1:0"

// clusterFlags are the flags by which processes of a job find and trust each other.
type clusterFlags struct {
	keys, tokenFile string
	insecure        bool
	// coordinator is where it is, "" to read that in the run directory.
	coordinator string
}

func (c *clusterFlags) securityFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.keys, "keys", "", "folder of the job's certificates, made by ndls cluster-keys")
	cmd.Flags().StringVar(&c.tokenFile, "token-file", "", "file of the job's token (default the environment variable "+rpc.TokenVariable+")")
	cmd.Flags().BoolVar(&c.insecure, "insecure", false, "let the job's token travel without TLS between hosts")
}

func (c *clusterFlags) coordinatorFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.coordinator, "coordinator", "", "HOST:PORT of the coordinator (default what it has written to the run directory)")
}

func (c *clusterFlags) security(role rpc.Role, log *slog.Logger) (*rpc.Security, error) {
	s, err := rpc.LoadSecurity(c.keys, role, c.tokenFile)
	if err != nil {
		return nil, err
	}
	for _, file := range s.Exposed {
		log.Warn("other users of this host can read a secret of the job", "file", file, "mend with", "chmod 600 "+file)
	}
	s.Insecure = c.insecure
	return s, nil
}

// locate finds the coordinator of the run in store.
func (c *clusterFlags) locate(store storage.Store) rpc.Locate {
	if c.coordinator != "" {
		return rpc.At(c.coordinator)
	}
	return func(ctx context.Context) (string, error) {
		a, err := readAddress(ctx, store)
		return a.RPC, err
	}
}

// seeds finds whom to gossip with.
func seeds(store storage.Store) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		a, err := readAddress(ctx, store)
		if err != nil || a.Gossip == "" {
			return nil, err
		}
		return []string{a.Gossip}, nil
	}
}
