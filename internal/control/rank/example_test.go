package rank_test

import (
	"fmt"

	"ndls/internal/control/rank"
)

func ExampleFromEnv() {
	environment := map[string]string{
		"SLURM_PROCID": "1", "SLURM_NTASKS": "3",
		"SLURM_JOB_NODELIST": "node[08-10]", "SLURMD_NODENAME": "node09",
	}
	r, err := rank.FromEnv(func(name string) string { return environment[name] })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Index, "of", r.Size, "on", r.Node, "from", r.From)
	fmt.Println("coordinator on", r.Hosts[0])
	// Output:
	// 1 of 3 on node09 from SLURM_PROCID
	// coordinator on node08
}
