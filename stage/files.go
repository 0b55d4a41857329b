package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/seal"
)

// WriteJSON returns a function that writes v as indented JSON.
func WriteJSON(v any) func(*catalog.File) error {
	return func(w *catalog.File) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
}

// ReadJSON reads a JSON file of the models or of the predictions.
func ReadJSON(ctx context.Context, cat *catalog.Catalog, path string, v any) error {
	return ReadFile(ctx, cat, path, func(r io.Reader) error {
		data, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("%w", err)
		}
		if err := json.Unmarshal(data, v); err != nil {
			return NoSense(path, err)
		}
		return nil
	})
}

// NoSense returns the error for a file that cannot be decoded.
func NoSense(path string, err error) error {
	return fmt.Errorf("%s cannot be decoded (%v): %w", path, err, seal.ErrCorrupt)
}

// ReadFile calls read with a file of the models or of the predictions. If the store fails, it returns the store's error, not what read
// makes of the bytes before.
func ReadFile(ctx context.Context, cat *catalog.Catalog, path string, read func(io.Reader) error) (err error) {
	e, ok := cat.Lookup(path)
	if !ok {
		verb := control.Train
		switch {
		case strings.HasPrefix(path, "predictions/"):
			verb = control.SmoothLabels
		case strings.HasPrefix(path, "model/tally-"):
			verb = control.Predict
		}
		return fmt.Errorf("there is no %s: run `ndls %s` first", path, verb)
	}
	r, err := cat.Stream(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	in := &fault{Reader: r}
	if err := read(in); in.err == nil {
		return err
	}
	return in.err
}

// fault keeps the error of its reader, except the end of the file.
type fault struct {
	io.Reader
	err error
}

func (f *fault) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}
