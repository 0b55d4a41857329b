// Package address stores the address of a run's coordinator: the coordinator writes it to a file in
// the run directory, where workers and ndls status read it.
//
// # Model
//
// The file exists as long as a coordinator works on the run, and longer if the coordinator was
// killed. Another coordinator of the run replaces it.
package address

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ndls/internal/storage"
)

// Name is the name of the file in a run directory.
const Name = "cluster/coordinator.json"

// maxBytes bounds the bytes of the file that are read.
const maxBytes = 1 << 16

// Address says where a coordinator can be reached.
type Address struct {
	RPC     string    `json:"address"`
	Gossip  string    `json:"gossip"`
	Started time.Time `json:"started"`
}

// Write replaces the address in a run directory.
func (a Address) Write(ctx context.Context, store storage.Store) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	if err := storage.Put(ctx, store.Create, Name, append(text, '\n')); err != nil {
		return fmt.Errorf("writing %s: %w", Name, err)
	}
	return nil
}

// Read reads the address of a run's coordinator. The error wraps [storage.ErrNotExist] if no
// coordinator has written one.
func Read(ctx context.Context, store storage.Store) (a Address, err error) {
	r, err := store.Open(ctx, Name)
	if err != nil {
		return a, fmt.Errorf("no coordinator has said how it is reached: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	text, err := io.ReadAll(io.NewSectionReader(r, 0, min(r.Size(), maxBytes)))
	if err != nil {
		return a, fmt.Errorf("reading %s: %w", Name, err)
	}
	if err := json.Unmarshal(text, &a); err != nil || a.RPC == "" {
		return a, fmt.Errorf("%s in %s is damaged; start the coordinator again", Name, store.URI())
	}
	return a, nil
}

// Seeds returns a function that finds the members with which a worker of the run gossips first.
func Seeds(store storage.Store) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		a, err := Read(ctx, store)
		if err != nil || a.Gossip == "" {
			return nil, err
		}
		return []string{a.Gossip}, nil
	}
}
