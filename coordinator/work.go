package coordinator

import (
	"context"
	"log/slog"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/placement"
	"ndls/plan"
)

// Sharers lists the workers that may share the rows of a graph.
type Sharers struct {
	// Fit lists the workers that take part.
	Fit []control.Hello
	// Held lists the workers that gangs leave out for a while because they were lost again and again. They take part only if the others cannot
	// do without them.
	Held []control.Hello
}

// Tasks runs the tasks of a stage. A [Scheduler] does so with workers.
type Tasks interface {
	// Run runs the tasks of one phase of a stage, and returns the reports of the stage so far.
	Run(ctx context.Context, tasks []control.Task) ([]control.StageReport, error)
	// Workers returns the number of workers for which the next stage is cut.
	Workers() int
	// Here lists the workers that are present now.
	Here() []control.Hello
	// Forget drops what is known of earlier attempts at a stage. The next Run begins it anew, and no worker can commit to it any more.
	// discards counts how often output of the run was discarded until now.
	Forget(ctx context.Context, discards int) error
	// Recorded returns the number of the last durable record about Tasks, 0 if there is none.
	Recorded() uint64
	// Losses lists the work that had to be done again.
	Losses() []Loss
	// Sharers waits for the workers that can share the rows of a graph, and lists them. With all it also waits, for a while, for missing ones.
	Sharers(ctx context.Context, all bool) (Sharers, error)
	// Announce publishes how far the stages of the run are.
	Announce(stages []StageStatus)
	// UnderWay returns the tasks of the present phase if workers work on them.
	UnderWay() []control.Task
}

// Job is a plan bound to a run directory.
type Job struct {
	Store   storage.Store
	Catalog *catalog.Catalog
	Tasks   Tasks
	Plan    plan.Options
	// Resources holds the known resources of a worker. Without Memory nothing is planned, because each worker plans for itself.
	Resources control.Resources
	// Measure measures the speeds of the machine. It is called once, if the coming stages are planned to take longer than measureFrom. If it
	// is nil, nothing is measured.
	Measure func(context.Context) (control.Speeds, error)
	// Begin, if not nil, is called before a stage waits for workers: by then the run directory is known to be one.
	Begin func(context.Context) error
	// Alone says that the only worker shares this host and measures the run directory together with its scratch folder. Several workers
	// measure their own scratch folders, and the sizes in the catalogue are added.
	Alone bool
	// Workers is the expected number of workers, 0 if unknown.
	Workers int
	// Parallel names the way in which workers share stages; "" is Columns.
	Parallel placement.Parallel
	// GroupSize is the number of workers that share the rows of a block of columns with a grid, 0 to choose it.
	GroupSize int
	Inputs    control.Inputs
	// Files lists the files of the dataset, without digests. It is empty if no dataset was named or the dataset has no files. Digest computes
	// the digests of some of them.
	Files  []InputFile
	Digest func(context.Context, []InputFile) error
	// Restart discards what the stages to run, and the stages that read their output, have committed. Otherwise the run continues.
	Restart bool
	// Whole leaves out stages for which the dataset lacks the input. A single stage that the user names is refused instead.
	Whole bool
	// Standing is the state of the run directory when it was opened, nil if it had no record.
	Standing *Standing
	// Lonely says that no other process writes to the run directory: files outside the catalogue are then left over. Local says so of the
	// records alone.
	Lonely, Local bool
	// Counts holds what the dataset states of the graph. Without a number of nodes nothing is planned before the partition is complete.
	Counts estimate.Counts
	// Stopped reports whether the cause that ended the context of Run is a stop by the user. It is nil if nobody can stop the run.
	Stopped func(cause error) bool
	// Versions and Host are copied into the record.
	Versions map[string]string
	Host     *control.Host
	Log      *slog.Logger

	// listed is the largest number of bytes in the catalogue after a phase of the stage.
	listed int64
	// lean says that the stage under way leaves out temporary files that only save time. spare is the number of bytes that copies of edges may
	// use all the same.
	lean  bool
	spare int64
	// leftOut lists the reasons for which stages were left out so far.
	leftOut []string
}
