package ndls

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/stage/registry"
)

// A Difference compares two runs: A with B.
type Difference struct {
	A string `json:"a"`
	B string `json:"b"`
	// Same reports whether the results are the same: all files that a run leaves, byte by byte. Input features
	// do not count where one of the runs has let them go.
	Same bool `json:"same"`
	// Options, Versions and Inputs are those that are not the same. An input file has its digest, or its size where
	// that is not known.
	Options  []Change `json:"options"`
	Versions []Change `json:"versions"`
	Inputs   []Change `json:"inputs"`
	// Stages are all stages of either run, whether they differ or not.
	Stages []StageChange `json:"stages"`
	// K is nil where one of the runs has no K table.
	K *KChange `json:"k,omitempty"`
	// Accuracy has the accuracies of both runs; nil where one of them has none.
	Accuracy *AccuracyChange `json:"accuracy,omitempty"`
	// Files compares the lasting files, by kind.
	Files []FileChange `json:"files"`
}

// Change is a value that is not the same in both runs; "" where a run has none.
type Change struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// StageChange compares what a stage took. The values of a run in which the stage is not complete are 0.
type StageChange struct {
	Stage    Stage   `json:"stage"`
	SecondsA float64 `json:"seconds_a"`
	SecondsB float64 `json:"seconds_b"`
	PeakA    int64   `json:"peak_bytes_a"`
	PeakB    int64   `json:"peak_bytes_b"`
}

// KChange compares how K is spread.
type KChange struct {
	MeanA float64 `json:"mean_a"`
	MeanB float64 `json:"mean_b"`
	MaxA  int     `json:"max_a"`
	MaxB  int     `json:"max_b"`
	// CappedA and CappedB are the shares of nodes that never settled.
	CappedA float64 `json:"capped_share_a"`
	CappedB float64 `json:"capped_share_b"`
	// Moved is the share of nodes by which the histograms differ: the smallest share whose K has to change
	// for one to become the other.
	Moved float64 `json:"moved_share"`
}

// AccuracyChange has the accuracies of both runs.
type AccuracyChange struct {
	BeforeA SplitAccuracy `json:"before_label_smoothing_a,omitzero"`
	BeforeB SplitAccuracy `json:"before_label_smoothing_b,omitzero"`
	AfterA  SplitAccuracy `json:"after_label_smoothing_a,omitzero"`
	AfterB  SplitAccuracy `json:"after_label_smoothing_b,omitzero"`
}

// FileChange compares the files of a kind by their checksums.
type FileChange struct {
	Kind string `json:"kind"`
	// Same is the number of files with the same bytes in both runs. The others are listed by name.
	Same  int      `json:"same"`
	Other []string `json:"other,omitempty"`
	OnlyA []string `json:"only_a,omitempty"`
	OnlyB []string `json:"only_b,omitempty"`
}

// Diff compares two runs by their records and catalogues: it reads no data.
func Diff(ctx context.Context, a, b *Directory) (x Difference, err error) {
	defer func() { err = interruption(ctx, err) }()
	x = Difference{
		A: a.uri, B: b.uri,
		Options:  changes(a.record.Plan.Values(), b.record.Plan.Values()),
		Versions: changes(a.record.Versions, b.record.Versions),
		Inputs:   moved(changes(inputsOf(a.record.Inputs), inputsOf(b.record.Inputs))),
		Stages:   []StageChange{}, Files: changedFiles(a, b),
	}
	for _, s := range Stages() {
		i, j := completeStage(a.record, s), completeStage(b.record, s)
		if i.Stage != "" || j.Stage != "" {
			x.Stages = append(x.Stages, StageChange{s, i.Seconds, j.Seconds, i.MeasuredPeak, j.MeasuredPeak})
		}
	}
	i, j := completeStage(a.record, StageLSI), completeStage(b.record, StageLSI)
	if i.LSI != nil && j.LSI != nil {
		x.K = changedK(i.LSI, j.LSI)
	}
	i, j = completeStage(a.record, StageEvaluate), completeStage(b.record, StageEvaluate)
	if i.Accuracy != nil && j.Accuracy != nil {
		x.Accuracy = &AccuracyChange{i.Accuracy.Base, j.Accuracy.Base, i.Accuracy.Smoothed, j.Accuracy.Smoothed}
	}
	x.Same = !slices.ContainsFunc(x.Files, func(f FileChange) bool { return len(f.Other)+len(f.OnlyA)+len(f.OnlyB) > 0 })
	return x, ctx.Err()
}

// completeStage is the record of a stage, empty unless it is complete.
func completeStage(rec *Record, s Stage) StageRecord {
	if !rec.Done(s) {
		return StageRecord{}
	}
	return *rec.Stage(s)
}

// changes lists the names that have other values, or a value in one of the maps alone, in order of name.
func changes(a, b map[string]string) []Change {
	list := []Change{}
	for name := range a {
		if a[name] != b[name] {
			list = append(list, Change{name, a[name], b[name]})
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			list = append(list, Change{name, "", b[name]})
		}
	}
	slices.SortFunc(list, func(x, y Change) int { return cmp.Compare(x.Name, y.Name) })
	return list
}

// inputsOf are the digests of input files by their paths.
func inputsOf(files []InputFile) map[string]string {
	all := map[string]string{}
	for _, f := range files {
		all[f.Path] = cmp.Or(f.Digest, f.Version, strconv.FormatInt(f.Size, 10)+" bytes")
	}
	return all
}

// moved leaves out files with the same bytes that have another path.
func moved(list []Change) []Change {
	left := []Change{}
	for _, x := range list {
		same := func(y Change) bool { return y != x && y.A == x.B && y.B == x.A }
		if x.A != "" && x.B != "" || !slices.ContainsFunc(list, same) {
			left = append(left, x)
		}
	}
	return left
}

// changedK compares two K tables.
func changedK(a, b *control.LSIReport) *KChange {
	x := &KChange{a.Mean, b.Mean, a.Max, b.Max, a.CappedShare, b.CappedShare, 0}
	shares := func(l *control.LSIReport) map[int64]float64 {
		total, by := int64(0), map[int64]float64{}
		for _, h := range l.Histogram {
			total += h[1]
		}
		for _, h := range l.Histogram {
			by[h[0]] = float64(h[1]) / float64(max(total, 1))
		}
		return by
	}
	of, to := shares(a), shares(b)
	ks := slices.AppendSeq(slices.Collect(maps.Keys(of)), maps.Keys(to))
	slices.Sort(ks)
	for _, k := range slices.Compact(ks) {
		x.Moved += max(of[k]-to[k], 0)
	}
	return x
}

// changedFiles compares lasting files by their checksums.
func changedFiles(a, b *Directory) []FileChange {
	list := []FileChange{}
	kindOf := func(kind string) *FileChange {
		i := slices.IndexFunc(list, func(f FileChange) bool { return f.Kind == kind })
		if i < 0 {
			i, list = len(list), append(list, FileChange{Kind: kind})
		}
		return &list[i]
	}
	dropped := a.record.Plan.DropFeatures || b.record.Plan.DropFeatures
	counts := func(kind string) bool {
		return registry.KindOf(kind).Lasting && !(dropped && kind == catalog.KindFeatures)
	}
	for _, e := range a.cat.Entries("") {
		if !counts(e.Kind) {
			continue
		}
		f := kindOf(e.Kind)
		switch other, ok := b.cat.Lookup(e.Path); {
		case !ok:
			f.OnlyA = append(f.OnlyA, e.Path)
		case other.Checksum != e.Checksum:
			f.Other = append(f.Other, e.Path)
		default:
			f.Same++
		}
	}
	for _, e := range b.cat.Entries("") {
		if _, ok := a.cat.Lookup(e.Path); !ok && counts(e.Kind) {
			f := kindOf(e.Kind)
			f.OnlyB = append(f.OnlyB, e.Path)
		}
	}
	slices.SortFunc(list, func(x, y FileChange) int { return cmp.Compare(x.Kind, y.Kind) })
	return list
}
