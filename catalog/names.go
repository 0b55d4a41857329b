package catalog

import (
	"regexp"
	"strings"
)

// made matches the names of all files that ndls makes in a run directory. A stage that writes files with other names needs a line here: gc
// removes only files that match, and a catalogue that is bound to a plan creates no others.
var made = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`catalog\.parquet`, `catalog/\d+\.(?:json|parquet)`, `run\.json`, `report\.(?:json|html)`, `journal/\d{8,}\.json`, `cluster/[0-9a-z.-]+`,
	`graph/(?:(?:summary|columns)\.json|(?:ids|nodes)\.parquet)`,
	`graph/splits/split-\d{3,}\.u8`,
	`graph/(?:edges|reversed)/part-\d{5,}\.parquet`,
	`graph/(?:reversed-)?hops/part-\d{5,}(?:-[0-9a-f]+)?\.hops`,
	`graph/runs/(?:order\.json|[a-z-]+/\d+-\d+[0-9a-z.-]*)`,
	`(?:graph/(?:features|answers|unfilled|neighbours)|(?:smoothed|soft_labels|predictions)/tiles|predictions/(?:given|errors|corrected))/tile-\d{5,}-\d{5,}\.f(?:16|32)(?:\.rows-\d+-\d+(?:\.(?:left|right))?)?`,
	`lsi/(?:(?:epsilon-[0-9e.+-]+/)?part-\d{5,}\.parquet|sample\.json|(?:rows/\d{5,}|squares/\d{5,}-\d{5,})-\d{5,}(?:\.rows-\d+-\d+)?|found/\d+-\d+-(?:[0-9e.+-]+|sample)-\d{5,})`,
	`(?:smoothed|hops|soft_labels|predictions)/part-\d{5,}\.arrow`,
	`predictions/tiles/tile-\d{5,}-\d{5,}\.rows(?:\.rows-\d+-\d+)?`,
	`predictions/best/run-\d{3,}/part-\d{5,}\.panels-\d{5,}`,
	`predictions/(?:(?:depth|written)\.json|(?:tally|correction|breakdown)-\d{5,}\.json|scores-\d{5,}|depth/panel-\d{5,}(?:\.rows-\d+-\d+)?)`,
	`model/(?:model\.json|run-\d{3,}\.(?:mlp|json|tally\.json)|tally-\d{5,}\.json|scores(?:-\d{5,})?)`,
	`checkpoints/.+/hop-\d+-[0-9a-z]+`,
	`scratch/(?:[^/]+/)*(?:scratch-\d+\.tmp|\d{6,}\.spill)`,
	`scratch/(?:[^/]+/)*cache/[0-9a-f]{16}(?:\.[a-z]+)?`,
}, "|") + `)(?:\.[0-9a-f]{16}\.tmp)?$`)

// Made reports whether a file of a run directory has a name that ndls gives, finished or not.
func Made(name string) bool { return made.MatchString(name) }

// attempt matches the name of an unfinished file.
var attempt = regexp.MustCompile(`^(.+)\.[0-9a-f]{16}\.tmp$`)

// AttemptAt returns the final name of an unfinished file, or "" for any other name.
func AttemptAt(name string) string {
	if m := attempt.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}

// IsOutput reports whether a name that ndls gives ([Made]) belongs to a file, finished or not, that a stage commits: not a record, a part
// of the catalogue or a temporary file.
func IsOutput(name string) bool {
	folder, _, inside := strings.Cut(name, "/")
	return inside && folder != "scratch" && !IsRecord(name)
}
