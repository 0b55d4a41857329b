package main

import (
	"math"

	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/stage/registry"
)

// floor holds the limit of the hardware if rows have to travel.
type floor struct {
	rows  float64 // seconds that the network alone needs for them
	total float64 // seconds of all of the job
}

// shared is a stage whose panels workers share by columns and rows.
type shared struct {
	stage        control.Stage
	panels, hops int
	row          int64
}

// sharedStages returns the shared stages of the job.
func (j job) sharedStages() (all []shared) {
	for _, s := range registry.Possible(j.plan, j.Counts) {
		switch s {
		case control.LSI:
			all = append(all, shared{s, packed.Panels(j.plan.LSI.Probes), min(j.Hops+1, j.plan.LSI.Kmax), probeRow})
		case control.Smooth:
			all = append(all, shared{s, packed.Panels(j.Features), j.Hops, rowBytes})
		case control.LabelDepth, control.SmoothLabels:
			all = append(all, shared{s, j.labelPanels(), min(j.Hops, j.plan.Labels.Kmax), rowBytes})
		}
	}
	return all
}

// floor takes, for each stage whose panels workers share, the groups with which the larger of two times is smallest: the computing of
// the busiest group, shared by its members, and the rows that each of these receives, at the rate of its network. Members
// receive the rows alone that they need. What other phases compute is shared by all workers. moved is the bytes of the store,
// as in bound, which floor never falls below.
func (j job) floor(moved float64) (f floor) {
	one := j
	one.workers = 1
	work := map[control.Stage]float64{}
	for _, p := range one.phases() {
		for i, pieces := range p.tasks {
			piece := p.of(i)
			work[p.stage] += float64(pieces*piece.units) * piece.unit
		}
	}
	for _, s := range j.sharedStages() {
		least := floor{total: math.Inf(1)}
		for size := 1; size <= j.workers; size++ {
			g := group{job: j, size: size, row: s.row, needed: true}
			if size > 1 && 2*g.rows() > j.machine.Memory || size == 1 && 2*s.row*j.Nodes > j.machine.Memory {
				continue
			}
			turns := math.Ceil(float64(s.panels) / float64(j.workers/size))
			rows := turns * float64(s.hops) * g.received() / j.machine.Net
			computing := turns * work[s.stage] / float64(s.panels) / float64(size)
			if all := max(rows, computing); all < least.total {
				least = floor{rows, all}
			}
		}
		f.rows += least.rows
		f.total += least.total
		delete(work, s.stage)
	}
	for _, s := range registry.Possible(j.plan, j.Counts) {
		f.total += work[s] / float64(j.workers)
	}
	f.total = max(f.total, j.bound(moved))
	return f
}
