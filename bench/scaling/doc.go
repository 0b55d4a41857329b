// Command scaling works out how long a run takes on a cluster, and what is lost to
// machines that die, to slow ones and to barriers:
//
//	go run -C bench ./scaling [-table columns|bytes|gangs|intervals|limits|renewals|held] [-workers 1,2,4,8] [-mtbf 720h] [-slow 0.25] …
//
// -help lists what can be set. Tables are Markdown. Rates come from RESULTS.md,
// which says where each comes from.
//
// # Model
//
// A stage is phases of tasks, a task is setting up, then units of equal length (hops),
// then writing. A machine has rates for edges, its disk and its network, and a share of
// the store's. Units take as long as the slower of computing and moving bytes.
//
// # Algorithm
//
// "columns" does not imitate the coordinator: it runs a [coordinator.Scheduler] with its
// journal and catalogue, in memory and on a simulated clock (package synctest), and
// workers that sleep where real ones compute. They join, ask for tasks, renew, commit
// checkpoints and finish through [control.Service], so that leases, deadlines, loss
// budgets and second attempts at slow tasks are the product's. Tasks are cut as
// the coordinator cuts them. A machine dies after a time that is exponentially distributed
// and a new one replaces it; a worker is slower by a log-normal factor, drawn for each
// attempt at a task.
//
// "gangs" is one group of all workers (--parallel intervals): they share the rows, one block of
// 16 columns after the other, and each fetches the rows of the others in a hop. It is
// computed, not run: a hop is simulated as the slowest of its members, and a death as the
// loss of the gang's hops since its checkpoint. Its columns "in waves" are of an exchange without
// a ring. "intervals" is several groups, each with a block of its own, and rows that travel only
// where they are needed.
//
// With -grid, groups of workers share the rows of a panel where that is faster. "bound" shows the limit of the hardware: work over workers, or bytes over network and store.
//
// "limits" measures, on this machine, what the coordinator takes for a lease and for a
// commit beside so many files, "renewals" what it takes with many workers on loopback. "held"
// replays real runs: tasks take what those of measured.json took, groups go hop by hop as with -grid, and the result
// is compared with what the run took.
//
// # Determinism
//
// A seed gives the same figures each time, but for records of the journal, of which events
// of the same instant may share one. Draws depend on task and attempt, not on which
// worker has it: idle workers ask for tasks one after the other.
//
// # Not supported
//
// Machines that die while they are idle: that costs nothing but what they had copies of.
// Networks and stores that fail, and coordinators that do.
package main
