// Package coordinator turns a plan into stages and tasks, has each task done once by
// some worker, whichever of them are lost on the way, and keeps run.json such that a
// failed or interrupted run never looks finished.
//
// # Model
//
// [Job.Run] is the one loop: for each stage that is not complete it writes
// run.json, cuts what is left of the stage into phases of tasks, has them done, and
// writes run.json again. A run directory continues with the plan it was started
// with; another plan is refused with [control.ErrPlanMismatch], naming the fields
// that decide the output of stages already begun. A folder that holds anything but a
// run is refused with [ErrForeign] before a byte is written.
//
// What does not fit the memory or the disk is refused, as far as the dataset states
// its size, before the first stage, and again before each: package estimate says
// what a stage takes from what is known by then, and run.json keeps that beside
// what it took.
//
// A [Scheduler] gives the tasks of a phase to workers ([control.Service]); a worker
// in the same process and one on another machine are the same to it. With one
// worker a stage is one task. With more, smooth and smooth-labels are tasks of
// columns, then tasks of rows; what is committed does not depend on the cut.
//
// # Leases
//
// A worker has a task by a lease: a fencing number, larger than all before in the
// run, and a deadline, which each renewal and each commit moves. Only what is done
// under an open lease counts. A lease ends in one of these ways, and then for good:
//
//	finished   its report is the task's; other leases of the task end with it
//	failed     the task is leased again, up to 3 times if it might have succeeded
//	unable     the task is leased again, to a worker that has not failed it so
//	drained    the task is leased again; that costs nothing
//	run out    the task is leased again, up to 5 times
//
// After that the run is given up with [ErrTask], which names the task and the last
// reason. A worker is unable whose memory or scratch disk does not do; after three
// such tasks it gets no more of the phase. A task that every worker here is unable
// to do is given up for with [control.ErrUnable] beside that, once workers that are
// missing have had the time of a lease to come. Once none waits, a task that still takes longer than a new attempt
// should, by what its worker says of it and by what other tasks of the phase take, is leased
// to a second worker; so is one whose worker cannot tell, if it takes more than twice the
// median of its phase, half of which is done. The first that finishes wins. While a lease changes the catalogue it does not run out, and no
// other attempt at its task ends, so that nothing is listed after a task is done.
// A member that is seen dead has its deadline brought nearer; if it is not dead, it
// renews before. If the coordinator itself stands still, so do the deadlines. The lease of a
// worker in the coordinator's own process does not run out: a process that gets little time may
// renew late, but it works on, and no other worker is there.
//
// Workers get tasks of which they hold data before others: files that they said
// they have, and what they worked on before.
//
// # Format
//
// run.json is a [Record], report.json a [Report]; both are written through the
// store's atomic replacement. report.html shows the same figures and refers to
// nothing outside itself. [Scheduler.Status] says how a run goes.
//
// journal/NNNNNNNN.json are the records of the [Journal], numbered from 1, each one
// line of JSON: {"crc32c": sum of the record's bytes, "record": {"number", "by":
// the coordinator, "events"}}. An event is {"fact": phase, leased, committed, ended,
// lost, forgotten or snapshot, …}. A record is created only where there is none, so
// that of two coordinators one finds its number taken: it has [ErrSuperseded], and
// from then on gives out and accepts nothing. An event is durable before anyone
// hears of it; events that come while a record is being written share the next. A
// coordinator that starts writes a record of its own, the claim, applies the events
// from the last snapshot on, and writes a snapshot; older records are removed but for
// claims. Then it reads the catalogue, in which everything is that was ever
// confirmed: a commit is confirmed only by a record after it. Leases that were open
// go on for their time from then; finished tasks stay finished. After 512 events
// there is a snapshot too.
//
// run.json, journal and catalogue know how far the others were. [Stand] holds them against each
// other and against the files that are there, for every verb. Nothing that the catalogue does not list is removed unless
// they belong together.
//
// # Memory
//
// A few kilobytes, about 1 KB for each task of the present phase, and up to 1 KB for
// each file in the catalogue: the record holds one K histogram, no rows.
//
// # Determinism
//
// Stages run one after the other in the order of [stage.All], phases of a stage
// too. Records and reports hold times, so their bytes differ from run to run; those
// of the files that workers commit do not.
//
// # Not supported
//
// There is no election: whoever starts the coordinator starts it again. One that
// stands still between a lease's check and the replacement of catalog.parquet, and
// goes on after another has taken over, puts back an older catalogue. It confirms
// nothing, and its successor, which has its own in memory, writes that with its next
// commit; only if the successor is killed before, files that it had confirmed are
// listed no more, and are made again.
package coordinator
