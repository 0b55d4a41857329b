package rank

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

type env map[string]string

func (e env) get(name string) string { return e[name] }

func TestFromEnv(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  env
		want Rank
	}{
		{"nothing", env{}, Rank{Size: 1, From: "single"}},
		{"own variables", env{"NDLS_RANK": "2", "NDLS_SIZE": "4"}, Rank{Index: 2, Size: 4, From: "NDLS_RANK"}},
		{
			"own variables before Slurm's",
			env{"NDLS_RANK": "0", "NDLS_SIZE": "1", "SLURM_PROCID": "3", "SLURM_NTASKS": "4"},
			Rank{Size: 1, From: "NDLS_RANK"},
		},
		{
			"Slurm step",
			env{"SLURM_PROCID": "1", "SLURM_NTASKS": "3", "SLURM_JOB_NODELIST": "w[1-3]", "SLURMD_NODENAME": "w2"},
			Rank{Index: 1, Size: 3, From: "SLURM_PROCID", Hosts: []string{"w1", "w2", "w3"}, Node: "w2"},
		},
		{
			"old name of the list",
			env{"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_NODELIST": "b12"},
			Rank{Size: 1, From: "SLURM_PROCID", Hosts: []string{"b12"}},
		},
		{"Slurm batch script without tasks", env{"SLURM_PROCID": "0", "SLURM_JOB_NODELIST": "w1"}, Rank{Size: 1, From: "single"}},
		{"shell of an allocation", env{"SLURM_NTASKS": "8", "SLURM_JOB_NODELIST": "w[1-8]"}, Rank{Size: 1, From: "single"}},
		{
			"Indexed Job",
			env{"JOB_COMPLETION_INDEX": "7", "NDLS_SIZE": "8"},
			Rank{Index: 7, Size: 8, From: "JOB_COMPLETION_INDEX"},
		},
		{
			"mpirun",
			env{"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "6"},
			Rank{Index: 5, Size: 6, From: "OMPI_COMM_WORLD_RANK"},
		},
		{
			"Slurm before mpirun",
			env{"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "6"},
			Rank{Index: 1, Size: 2, From: "SLURM_PROCID"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := FromEnv(tc.env.get)
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}

func TestFromEnvRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  env
		want string
	}{
		{"rank without size", env{"NDLS_RANK": "0"}, "NDLS_SIZE is not set"},
		{"size without rank", env{"NDLS_SIZE": "4"}, "NDLS_RANK or JOB_COMPLETION_INDEX is not set"},
		{"task without tasks", env{"SLURM_PROCID": "2"}, "SLURM_NTASKS is not set"},
		{"completion index without size", env{"JOB_COMPLETION_INDEX": "0"}, "NDLS_SIZE is not set"},
		{"mpirun size alone", env{"OMPI_COMM_WORLD_SIZE": "2"}, "OMPI_COMM_WORLD_RANK is not set"},
		{"rank equals size", env{"NDLS_RANK": "4", "NDLS_SIZE": "4"}, `NDLS_RANK is "4", not a number from 0 to 3`},
		{"negative rank", env{"NDLS_RANK": "-1", "NDLS_SIZE": "4"}, `NDLS_RANK is "-1"`},
		{"no processes", env{"NDLS_RANK": "0", "NDLS_SIZE": "0"}, `NDLS_SIZE is "0", not a number of processes`},
		{"a word", env{"OMPI_COMM_WORLD_RANK": "first", "OMPI_COMM_WORLD_SIZE": "2"}, `OMPI_COMM_WORLD_RANK is "first"`},
		{"beyond 32 bits", env{"NDLS_RANK": "0", "NDLS_SIZE": "4294967296"}, "not a number of processes"},
		{"bad hosts", env{"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_JOB_NODELIST": "a[1-"}, "SLURM_JOB_NODELIST"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := FromEnv(tc.env.get)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrEnvironment) && !errors.Is(err, ErrHosts) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestExpandHosts(t *testing.T) {
	for _, tc := range []struct{ list, want string }{
		{"b12", "b12"},
		{"a[1-3,7],b12", "a1 a2 a3 a7 b12"},
		{"n[08-11]", "n08 n09 n10 n11"},
		{"n[8-11]", "n8 n9 n10 n11"},
		{"n[001,02-03]", "n001 n02 n03"},
		{"rack[1-2]node[09-10]", "rack1node09 rack1node10 rack2node09 rack2node10"},
		{"gpu-[0-1]-ib.cluster.example", "gpu-0-ib.cluster.example gpu-1-ib.cluster.example"},
		{"b,a,b", "b a b"},
		{"[3-4]", "3 4"},
	} {
		t.Run(tc.list, func(t *testing.T) {
			got, err := ExpandHosts(tc.list)
			if err != nil || strings.Join(got, " ") != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestExpandHostsRefuses(t *testing.T) {
	for _, tc := range []struct{ list, want string }{
		{"", "empty"},
		{"a,", "empty"},
		{",a", "empty"},
		{"a[1-3", "does not close"},
		{"a]1", "']'"},
		{"a b", "' '"},
		{"a[]", `"" in brackets is not a number`},
		{"a[1-]", "not a number"},
		{"a[x]", "not a number"},
		{"a[[1]]", "not a number"},
		{"a[+1-2]", "not a number"},
		{"a[1-2-3]", "not a number"},
		{"a[3-1]", "runs backwards"},
		{"a[1-9999999999]", "more than 65536 hosts"},
		{"a[0-999]b[0-999]", "more than 65536 hosts"},
		{"a[0-40000],b[0-40000]", "more than 65536 hosts"},
		{strings.Repeat("a", 300), "more than 255 bytes"},
	} {
		t.Run(tc.list, func(t *testing.T) {
			_, err := ExpandHosts(tc.list)
			if !errors.Is(err, ErrHosts) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want ErrHosts with %q", err, tc.want)
			}
		})
	}
}

func FuzzExpandHosts(f *testing.F) {
	for _, s := range []string{"a[1-3,7],b12", "rack[1-2]node[09-10]", "a[1-", "n[0-65535]", "[1]", "a[1][2][3]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := ExpandHosts(list)
		if err != nil {
			if !errors.Is(err, ErrHosts) {
				t.Fatalf("error %v is no ErrHosts", err)
			}
			return
		}
		if len(hosts) == 0 || len(hosts) > MaxHosts {
			t.Fatalf("%d hosts", len(hosts))
		}
		// Expanded names are a list of the same hosts.
		again, err := ExpandHosts(strings.Join(hosts, ","))
		if err != nil || !reflect.DeepEqual(again, hosts) {
			t.Fatalf("%.100q expanded twice: %v", list, err)
		}
	})
}
