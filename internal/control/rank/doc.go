// Package rank tells a process where it stands in a job, from what the engine
// that started it left in the environment, without asking that engine.
//
// # Model
//
// A [Rank] is an index within a size, 0-based. The first of these that is set
// decides; a user's flags come before all of them:
//
//	NDLS_RANK, NDLS_SIZE                  any launcher that sets them
//	SLURM_PROCID, SLURM_NTASKS            Slurm, a step started by srun
//	JOB_COMPLETION_INDEX, NDLS_SIZE       a Kubernetes Indexed Job; the manifest sets NDLS_SIZE
//	OMPI_COMM_WORLD_RANK, ..._SIZE        Open MPI's mpirun
//	none of them                          rank 0 of 1
//
// A variable without its partner is an error that names both, with one
// exception: a Slurm batch script without --ntasks has SLURM_PROCID 0 alone and
// is single. Under Slurm the rank carries the hosts of the job
// (SLURM_JOB_NODELIST, or the older SLURM_NODELIST) and the name of its own node
// (SLURMD_NODENAME); the host's name is no substitute, as several nodes may run
// on one host.
//
// # Format
//
// The list of hosts has the syntax that scontrol show hostnames expands:
//
//	list   = item {"," item}
//	item   = {text | "[" range {"," range} "]"}
//	range  = number ["-" number]
//
// Numbers of a range are padded with zeros to the width of the first:
// n[08-10] is n08, n09, n10. Several brackets in an item count like the digits of
// a number, the last fastest. The order is that of the list; nothing is sorted or
// dropped.
//
// # Memory
//
// At most [MaxHosts] names.
package rank
