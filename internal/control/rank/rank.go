package rank

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrEnvironment reports variables that contradict each other or make no sense.
var ErrEnvironment = errors.New("the environment names no rank")

// Rank is the place of a process in its job.
type Rank struct {
	// Index is in [0, Size).
	Index, Size int
	// From says what decided: "NDLS_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX",
	// "OMPI_COMM_WORLD_RANK" or "single".
	From string
	// Hosts are the nodes of a Slurm job in its order, nil elsewhere.
	Hosts []string
	// Node is the Slurm name of the node of this process, "" elsewhere.
	Node string
}

// pairs lists where an index and its size may come from, in order of precedence.
var pairs = []struct{ index, size string }{
	{"NDLS_RANK", "NDLS_SIZE"},
	{"SLURM_PROCID", "SLURM_NTASKS"},
	{"JOB_COMPLETION_INDEX", "NDLS_SIZE"},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
}

// FromEnv reads the rank with getenv, which is os.Getenv outside tests. An error
// wraps [ErrEnvironment] and names the variables.
func FromEnv(getenv func(string) string) (Rank, error) {
	for _, p := range pairs {
		index, size := getenv(p.index), getenv(p.size)
		switch {
		case index == "" || p.index == "SLURM_PROCID" && index == "0" && size == "":
			continue
		case size == "":
			return Rank{}, fmt.Errorf("rank: %s is %q but %s is not set: set it to the number of processes of the job: %w",
				p.index, index, p.size, ErrEnvironment)
		}
		r, err := parse(p.index, index, p.size, size)
		if err == nil && p.index == "SLURM_PROCID" {
			err = r.addHosts(getenv)
		}
		return r, err
	}
	// SLURM_NTASKS alone is what the shell of an allocation has.
	for _, p := range []struct{ size, index string }{
		{"NDLS_SIZE", "NDLS_RANK or JOB_COMPLETION_INDEX"},
		{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
	} {
		if size := getenv(p.size); size != "" {
			return Rank{}, fmt.Errorf("rank: %s is %q but %s is not set: set both or neither: %w", p.size, size, p.index, ErrEnvironment)
		}
	}
	return Rank{Size: 1, From: "single"}, nil
}

func parse(indexName, index, sizeName, size string) (Rank, error) {
	n, err := strconv.ParseInt(size, 10, 32)
	if err != nil || n < 1 {
		return Rank{}, fmt.Errorf("rank: %s is %q, not a number of processes from 1: %w", sizeName, size, ErrEnvironment)
	}
	i, err := strconv.ParseInt(index, 10, 32)
	if err != nil || i < 0 || i >= n {
		return Rank{}, fmt.Errorf("rank: %s is %q, not a number from 0 to %d, below %s: %w", indexName, index, n-1, sizeName, ErrEnvironment)
	}
	return Rank{Index: int(i), Size: int(n), From: indexName}, nil
}

func (r *Rank) addHosts(getenv func(string) string) error {
	name, list := "SLURM_JOB_NODELIST", getenv("SLURM_JOB_NODELIST")
	if list == "" {
		name, list = "SLURM_NODELIST", getenv("SLURM_NODELIST")
	}
	if list != "" {
		hosts, err := ExpandHosts(list)
		if err != nil {
			return fmt.Errorf("rank: reading %s: %w", name, err)
		}
		r.Hosts = hosts
	}
	r.Node = getenv("SLURMD_NODENAME")
	return nil
}
