package depth_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/depth"
	"ndls/stage/stagetest"
)

// TestSpectrum finds λ₂ of a cycle, of which it is known, beside a smaller component, and
// compares exact K with the bound.
func TestSpectrum(t *testing.T) {
	const n = 31
	var text strings.Builder
	text.WriteString("a,b\n100,101\n101,102\n")
	for i := range n {
		fmt.Fprintf(&text, "%d,%d\n", i, (i+1)%n)
	}
	file := filepath.Join(t.TempDir(), "cycle.csv")
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	opts := plan.Default()
	opts.LSI.Mode, opts.LSI.R, opts.LSI.Epsilon, opts.LSI.Kmax = "influence-exact", 0, 0.01, 400
	spectrum := func() *control.SpectrumReport {
		t.Helper()
		return stagetest.Run(t, storagetest.NewMem(), opts, stagetest.On(t, "edges:"+file), control.Partition, control.LSI, depth.Spectrum)[2].Spectrum
	}
	s := spectrum()
	want := (1 + 2*math.Cos(2*math.Pi/n)) / 3
	if s == nil || s.Component != n || s.Components < 2 || math.Abs(s.Lambda2-want) > s.Error || s.Error > 2e-5 {
		t.Fatalf("%+v, λ₂ is %g", s, want)
	}
	b := s.Bound
	if b == nil || b.Nodes != n || b.Capped != 0 || b.Within != 1 || b.Slack.Least < 0 || b.Slack.Least > b.Slack.Median || b.Slack.Median > b.Slack.Most {
		t.Fatalf("bound %+v (%s)", b, s.WithoutBound)
	}
	// All nodes of a cycle are alike.
	k := math.Log(0.01*math.Sqrt(1.0/n)) / math.Log(want)
	if b.Slack.Least != b.Slack.Most || float64(b.Slack.Most) > k {
		t.Errorf("slack %+v of a bound of %g", b.Slack, k)
	}
	opts.LSI.Kmax = 5
	if b := spectrum().Bound; b == nil || b.Capped != n || b.Nodes != 0 {
		t.Errorf("no node settles in 5 hops: %+v", b)
	}
	opts.LSI.Stationary = "global"
	if s := spectrum(); s.Bound != nil || !strings.Contains(s.WithoutBound, "connected") {
		t.Errorf("%+v", s)
	}
	opts.LSI.R, opts.LSI.Stationary = 0.5, "component"
	if s := spectrum(); s.Bound != nil || !strings.Contains(s.WithoutBound, "--r 0") {
		t.Errorf("%+v", s)
	}
}
