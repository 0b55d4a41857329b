package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pin lets the process run on so many of its cores, from the first one on, or on all of these
// if there are fewer.
func pin(first, cores int) error {
	var set unix.CPUSet
	set.Zero()
	for i := range cores {
		set.Set(first + i)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil && err != unix.ESRCH {
			return fmt.Errorf("run on %d cores: %w", cores, err)
		}
	}
	return nil
}

// readyTime returns the time for which the threads of the process have run, or waited for a core.
func readyTime() (sum time.Duration) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	for _, t := range tasks {
		data, err := os.ReadFile("/proc/self/task/" + t.Name() + "/schedstat")
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(data))[:2] {
			ns, _ := strconv.ParseInt(field, 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}
