// Package coordinator turns a plan into stages and tasks. It makes sure that some worker does each task once, whichever workers are lost on
// the way. It writes run.json so that a failed or interrupted run never looks finished.
//
// # Model
//
// [Job.Run] is the only loop. For each stage that is not complete it writes run.json, runs what is left of the stage in phases of tasks,
// and writes run.json again. Package placement decides which tasks these are; the coordinator waits for the workers, and tells it who is
// present. A run directory continues with the plan that it began with. [control.ErrPlanMismatch] refuses another plan and names the options
// that decide the output of stages already begun. [ErrForeign] refuses a folder that holds anything but a run, before a byte is written.
//
// A stage that exceeds the memory or the disk is refused before the first stage, as far as the dataset states its size, and again before
// the stage itself. Package estimate plans it from what is known by then. run.json keeps the plan beside what the stage used.
//
// A [Scheduler] gives the tasks of a phase to workers ([control.Service]). It does not distinguish a worker in the same process from one on
// another machine. The committed bytes do not depend on how stages are divided into tasks.
//
// # Leases
//
// A worker holds a task by a lease. A lease has a fencing number, which is larger than all earlier ones of the run, and a deadline, which
// each renewal and each commit moves. Only work under an open lease counts. A lease ends once, in one of these ways:
//
//	finished   its report becomes the task's; other leases of the task end with it
//	failed     the task is leased again, up to 3 times if it might have succeeded
//	unable     the task is leased again, to a worker that has not reported so
//	drained    the task is leased again; that costs nothing
//	run out    the task is leased again, until 5 different workers were lost with it
//
// After that the run ends with [ErrTask], which names the task and the last reason. A worker reports "unable" if it has too little memory
// or scratch disk; after three such tasks it gets no more of the phase. If every present worker is unable, the run fails with [ErrTask] and
// [control.ErrUnable], after missing workers had the time of a lease to come.
//
// If no task waits, a second worker gets a task that still needs longer than a new attempt would. The time left comes from the task's
// worker; the time of a new attempt comes from other tasks of the phase. If a worker cannot tell the time left, its task counts as late
// after twice the median of its phase, once half of the phase is done. The first attempt that finishes counts.
//
// A lease does not run out while it changes the catalogue, and no other attempt at its task ends meanwhile, so that nothing is listed after
// a task is done. If a member is seen dead, its deadline comes nearer; a member that is alive renews before. If the coordinator itself
// stands still, so do the deadlines. The lease of a worker in the coordinator's own process does not run out: a slow process may renew
// late, but it continues, and there is no other worker.
//
// A worker first gets tasks whose data it holds: files that it has named, and files that it worked on before.
//
// # Format
//
// run.json is a [Record], report.json a [Report]. Both are written by the store's atomic replacement. report.html shows the same figures
// and loads nothing else. [Scheduler.Status] describes the present state.
//
// journal/NNNNNNNN.json are the records of the [Journal], numbered from 1. Each is one line of JSON: {"crc32c": sum of the record's bytes,
// "record": {"number", "by": the coordinator, "events"}}. An event is {"fact": phase, leased, committed, ended, lost, forgotten or
// snapshot, …}. A record is created only under a new number. If two coordinators write the same number, the second gets [ErrSuperseded],
// and gives out and accepts nothing from then on. An event is durable before anyone hears of it. Events that come while a record is being
// written share the next record.
//
// A coordinator that starts writes a record of its own, the claim. It applies the events from the last snapshot on and writes a snapshot;
// older records except claims are removed. Then it reads the catalogue, which holds everything that was ever confirmed, because a record
// after the commit confirms it. Open leases continue for their time from then; finished tasks stay finished. Another snapshot follows every
// 512 events.
//
// run.json, journal and catalogue each know how far the others were. [Stand] compares them with each other and with the existing files, for
// every verb. A file outside the catalogue is removed only if the three agree.
//
// # Memory
//
// A few kilobytes, about 1 KB for each task of the present phase, and up to 1 KB for each file in the catalogue. The record holds one K
// histogram and no rows.
//
// # Determinism
//
// Stages run one after the other in the order of [registry.All], and so do the phases of a stage. Records and reports hold times, so that
// their bytes differ from run to run. The bytes of the files that workers commit do not.
//
// # Not supported
//
// There is no election: whoever starts the coordinator must start it again. A coordinator may stand still between the check of a lease and
// the replacement of catalog.parquet, and continue after another has taken over. It then restores an older catalogue. It confirms nothing,
// and its successor, which has its own catalogue in memory, writes that with its next commit. Only if the successor is killed before that,
// files that it had confirmed are no longer listed, and are made again.
package coordinator
