package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ndls/internal/storage"
	"ndls/shards"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		want   string
	}{
		{"none", nil, "–"},
		{"one", []float64{2e6}, "2.0"},
		{"even", []float64{4e6, 1e6}, "2.5 (1.0–4.0)"},
		{"odd", []float64{3e6, 9e6, 1e6}, "3.0 (1.0–9.0)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := spreadOf(test.values).text(1e-6, 1); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestDifference(t *testing.T) {
	ours := [][2]float64{{1, 4}, {0, 2}}
	for _, test := range []struct {
		name   string
		theirs [][2]float64
		want   float64
	}{
		{"the same", [][2]float64{{1, 4}, {0, 2}}, 0},
		{"a sum apart", [][2]float64{{1.5, 4}, {0, 2}}, 0.125},
		{"an absolute sum apart", [][2]float64{{1, 4}, {0, 1}}, 1},
		{"none", nil, math.Inf(1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := difference(ours, test.theirs); got != test.want {
				t.Errorf("%g, want %g", got, test.want)
			}
		})
	}
}

func TestDifferenceOfNaNIsNoAgreement(t *testing.T) {
	nan := [][2]float64{{math.NaN(), math.NaN()}}
	if got := difference([][2]float64{{1, 1}}, nan); got <= tolerance {
		t.Errorf("a sample of NaN is %g apart", got)
	}
}

// TestRace runs contenders that are quick, slow, dying and dead.
func TestRace(t *testing.T) {
	var order []string
	contend := func(name string, o outcome) contender {
		return contender{name, func(context.Context) outcome { order = append(order, name); return o }}
	}
	dead := map[string]bool{"dead": true}
	done, err := race(t.Context(), []contender{
		contend("quick", outcome{Seconds: map[string]float64{"x": 2}, Peak: 7}),
		contend("slow", outcome{Wall: 2 * time.Second}),
		contend("dying", outcome{Died: "out of memory"}),
		contend("dead", outcome{}),
	}, 2, time.Second, dead)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "quick slow dying quick" {
		t.Errorf("ran %s", got)
	}
	if !dead["dying"] || dead["quick"] {
		t.Errorf("dead are %v", dead)
	}
	if s := done[0].over(func(o outcome) []float64 { return []float64{o.whole()} }); s.median != 2 || done[0].peak() != 7 {
		t.Errorf("quick took %v with %d bytes", s, done[0].peak())
	}
	if done[2].remark() != "out of memory" || !strings.HasPrefix(done[3].remark(), "not tried") {
		t.Errorf("remarks %q and %q", done[2].remark(), done[3].remark())
	}
}

func TestJailTellsHowAProcessDied(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"well", `echo '{"phase": "read"}'; echo '{"edges": 3}'`, ""},
		{"own words", `echo '{"phase": "build"}'; echo MemoryError >&2; exit 1`, "out of memory by its own account in “build”"},
		{"another error", `echo a >&2; echo no such file >&2; exit 2`, "failed: exit status 2 no such file"},
		{"killed", `echo '{"phase": "hops"}'; kill -9 $$`, "out of memory, killed in “hops”"},
		{"too slow", `echo '{"phase": "hops"}'; sleep 60`, "stopped after 1s in “hops”"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := jail{memory: 8 << 30, time: time.Second}.measure(t.Context(), process{command: []string{"sh", "-c", test.script}})
			if o.Died != test.want {
				t.Errorf("died %q, want %q", o.Died, test.want)
			}
			if test.want == "" && (o.Edges != 3 || o.Peak == 0) {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestReport(t *testing.T) {
	r := report{head: "# Head\n"}
	r.section("Title", "What it is.")
	r.table("a", "b").row("1", "x|y")
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Head\n\n## Title\n\nWhat it is.\n\n| a | b |\n|---|---|\n| 1 | x/y |\n"
	if string(text) != want {
		t.Errorf("wrote\n%s\nwant\n%s", text, want)
	}
}

func TestParseGiB(t *testing.T) {
	for s, want := range map[string]int64{"20GiB": 20 << 30, "0.5GiB": 1 << 29, "20": 0, "GiB": 0, "-1GiB": 0, "NaNGiB": 0} {
		if got, err := parseGiB(s); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %d, %v", s, got, err)
		}
	}
}

// TestSortPairs sorts a small graph, and reads what it wrote.
func TestSortPairs(t *testing.T) {
	dir := t.TempDir()
	if err := sortPairs(context.Background(), "karate:", settings{dir: dir, sortMemory: "1GiB", threads: 2}); err != nil {
		t.Fatal(err)
	}
	files, err := storage.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	file, err := files.Open(context.Background(), "sorted.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := shards.OpenEdges(file, "sorted.parquet")
	if err != nil {
		t.Fatal(err)
	}
	src, dst := make([]uint32, 200), make([]uint32, 200)
	n, err := r.Read(src, dst)
	if err != nil || n != 2*78 {
		t.Fatalf("%d pairs, %v", n, err)
	}
	pairs := map[[2]uint32]bool{}
	for i := range n {
		if pairs[[2]uint32{src[i], dst[i]}] = true; i > 0 && (dst[i] < dst[i-1] || dst[i] == dst[i-1] && src[i] <= src[i-1]) {
			t.Fatalf("pair %d → %d follows %d → %d", src[i], dst[i], src[i-1], dst[i-1])
		}
	}
	for p := range pairs {
		if !pairs[[2]uint32{p[1], p[0]}] {
			t.Errorf("pair %d → %d without its reverse", p[0], p[1])
		}
	}
}
