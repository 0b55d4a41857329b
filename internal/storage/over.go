package storage

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Over is a Store that lies over another one: it reads the files of both, its own first, and
// writes and removes its own alone.
type Over struct {
	Store
	below Store
}

// NewOver lays a store over the one below.
func NewOver(store, below Store) *Over { return &Over{store, below} }

// Open implements Store.
func (o *Over) Open(ctx context.Context, name string) (Reader, error) {
	return either(func(s Store) (Reader, error) { return s.Open(ctx, name) }, o)
}

// OpenDigest is Open for a file whose bytes the caller knows.
func (o *Over) OpenDigest(ctx context.Context, name string, want Digest) (Reader, error) {
	return either(func(s Store) (Reader, error) { return OpenDigest(ctx, s, name, want) }, o)
}

// Stat implements Store.
func (o *Over) Stat(ctx context.Context, name string) (Info, error) {
	return either(func(s Store) (Info, error) { return s.Stat(ctx, name) }, o)
}

// either asks the store on top, and the one below where that has no such file.
func either[T any](ask func(Store) (T, error), o *Over) (T, error) {
	x, err := ask(o.Store)
	if errors.Is(err, ErrNotExist) {
		return ask(o.below)
	}
	return x, err
}

// List implements Store.
func (o *Over) List(ctx context.Context, prefix string) ([]Info, error) {
	all, err := o.Store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	below, err := o.below.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	for _, x := range below {
		if !slices.ContainsFunc(all, func(y Info) bool { return x.Name == y.Name }) {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
