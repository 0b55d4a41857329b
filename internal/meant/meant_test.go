package meant

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWord(t *testing.T) {
	flags := []string{"batch-size", "dataset", "epochs", "epsilon", "fp16", "http", "kmax", "label-epsilon", "label-kmax", "memory", "probes", "r", "rule", "run", "runs", "x7"}
	for given, want := range map[string]string{
		"rnu": "run", "rnus": "runs", "epsilom": "epsilon", "epoch": "epochs", "k-max": "kmax", "labelepsilon": "label-epsilon",
		"batch_size": "batch-size", "Memory": "memory", "MEMROY": "memory", "data": "dataset", "mem": "memory", "htpp": "http",
		"run": "run", "R": "r",
		"fp61": "", "x8": "", "xx7": "x7", "pf16": "fp16",
		"progress": "", "x": "", "ab": "", "label": "", "": "", "e": "",
	} {
		if got := Word(given, flags); got != want {
			t.Errorf("Word(%q) = %q, want %q", given, got, want)
		}
	}
	if got := Hint("stauts", []string{"run", "status"}); got != "; did you mean status?" {
		t.Errorf("Hint = %q", got)
	}
	if got := Hint("nothing", []string{"run", "status"}); got != "" {
		t.Errorf("Hint = %q", got)
	}
}

// TestDistance compares the distance with its definition, for words with many equal letters.
func TestDistance(t *testing.T) {
	words := rapid.StringMatching(`[abc]{0,7}`)
	s := NewSearch("")
	rapid.Check(t, func(r *rapid.T) {
		a, b := words.Draw(r, "a"), words.Draw(r, "b")
		s.given = a
		want := byDefinition(a, b)
		for most := range 8 {
			got := s.distance(b, most)
			if got != want && (got <= most || want <= most) {
				r.Fatalf("%q and %q, at most %d: %d, want %d", a, b, most, got, want)
			}
		}
	})
}

// byDefinition is the distance by trying every last step.
func byDefinition(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	x, y := len(a)-1, len(b)-1
	d := min(byDefinition(a[:x], b), byDefinition(a, b[:y])) + 1
	step := 1
	if a[x] == b[y] {
		step = 0
	}
	d = min(d, byDefinition(a[:x], b[:y])+step)
	if x > 0 && y > 0 && a[x] == b[y-1] && a[x-1] == b[y] {
		d = min(d, byDefinition(a[:x-1], b[:y-1])+1)
	}
	return d
}

// BenchmarkAdd is the time of a word of twenty letters, as ids of documents have them.
func BenchmarkAdd(b *testing.B) {
	s := NewSearch("10.1000/182-" + strings.Repeat("x", 8))
	for b.Loop() {
		s.Add("10.1000/182-87654321")
	}
}
