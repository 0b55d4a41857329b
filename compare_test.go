package ndls_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls"
)

// TestListFindsRuns: complete, failed and damaged ones, and no others.
func TestListFindsRuns(t *testing.T) {
	dir := t.TempDir()
	whole := quick(filepath.Join(dir, "a", "whole"))
	if _, err := ndls.Run(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	begun := quick(filepath.Join(dir, "b", "begun"))
	if _, err := ndls.Run(t.Context(), begun, ndls.StagePartition); err != nil {
		t.Fatal(err)
	}
	damaged := quick(filepath.Join(dir, "c"))
	if _, err := ndls.Run(t.Context(), damaged, ndls.StagePartition); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(damaged.Run, "run.json")
	if err := os.Truncate(record, 100); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "other", "run.json"), filepath.Join(dir, "empty", "x")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(`{"not": "ours"}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var runs []ndls.RunSummary
	if err := ndls.List(t.Context(), []string{dir}, func(s ndls.RunSummary) error { runs = append(runs, s); return nil }); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range runs {
		names = append(names, s.Run)
	}
	if want := []string{whole.Run, begun.Run, damaged.Run}; !slices.Equal(names, want) {
		t.Fatalf("found %v, not %v", names, want)
	}
	if s := runs[0]; s.State != ndls.Complete || s.Stage != "" || s.Working || s.Bytes == 0 || s.After.Test == nil || s.Before.Valid == nil || !strings.HasPrefix(s.Dataset, toy) || s.Changed.IsZero() {
		t.Errorf("the whole run: %+v", s)
	}
	if s := runs[1]; s.After.Test != nil || s.Bytes == 0 {
		t.Errorf("the run that has begun: %+v", s)
	}
	if s := runs[2]; s.Problem == "" || s.State != "" {
		t.Errorf("the damaged run: %+v", s)
	}
	if err := ndls.List(t.Context(), []string{filepath.Join(dir, "missing")}, nil); err == nil {
		t.Error("a folder that is not there is listed")
	}
	// A run directory is found by its own name, too.
	runs = nil
	if err := ndls.List(t.Context(), []string{whole.Run}, func(s ndls.RunSummary) error { runs = append(runs, s); return nil }); err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// TestDiffSaysWhatDiffers compares a run with one of the same options, and with one of others.
func TestDiffSaysWhatDiffers(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "edges.csv")
	if err := os.WriteFile(input, []byte(strings.Repeat("1,2\n2,3\n3,4\n4,1\n1,3\n5,1\n", 2)), 0o644); err != nil {
		t.Fatal(err)
	}
	made := func(name, uri string, epsilon float64, threads int) *ndls.Directory {
		d, err := ndls.Run(t.Context(), ndls.Config{
			Run: filepath.Join(dir, name), Dataset: uri, Resources: ndls.Resources{Memory: 256 << 20, Threads: threads},
			Options: func(o *ndls.Options) { o.LSI.Epsilon, o.LSI.Mode = epsilon, "influence-exact" },
		}, ndls.StagePartition, ndls.StageLSI)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	moved := filepath.Join(dir, "moved", "edges.csv")
	if err := os.MkdirAll(filepath.Dir(moved), 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(moved, text, 0o644); err != nil {
		t.Fatal(err)
	}
	a, b, c := made("a", "edges:"+input, 0.03, 1), made("b", "edges:"+moved, 0.03, 2), made("c", "edges:"+input, 0.5, 1)
	same, err := ndls.Diff(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	if !same.Same || len(same.Options)+len(same.Versions)+len(same.Inputs) > 0 || len(same.Stages) != 2 || same.K == nil || same.K.Moved != 0 {
		t.Errorf("two runs of the same bytes: %+v", same)
	}
	other, err := ndls.Diff(t.Context(), a, c)
	if err != nil {
		t.Fatal(err)
	}
	if want := []ndls.Change{{Name: "epsilon", A: "0.03", B: "0.5"}}; other.Same || !slices.Equal(other.Options, want) || other.K == nil || other.K.Moved <= 0 {
		t.Errorf("another ε: %+v, K %+v", other, other.K)
	}
	for _, f := range other.Files {
		if differs := len(f.Other) > 0; differs != (f.Kind == "lsi") || len(f.OnlyA)+len(f.OnlyB) > 0 {
			t.Errorf("files of kind %s: %+v", f.Kind, f)
		}
	}
	if err := os.WriteFile(input, []byte("1,2\n2,3\n3,4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	changed, err := ndls.Diff(t.Context(), a, made("d", "edges:"+input, 0.03, 1))
	if err != nil {
		t.Fatal(err)
	}
	if changed.Same || len(changed.Inputs) != 1 || changed.Inputs[0].Name != input || !strings.HasPrefix(changed.Inputs[0].A, "xxh3-256k:") || changed.Inputs[0].A == changed.Inputs[0].B {
		t.Errorf("another input: %+v", changed.Inputs)
	}
}
