// Package kernels selects one of the implementations of an operation: assembly for the
// processor, or its twin in Go. All implementations give the same bits.
package kernels

import "fmt"

// Select returns the kernel of that name from all, or the first for "auto" and "". A name
// that none of them has is an error.
func Select[K interface{ Name() string }](all []K, name string) (k K, err error) {
	if name == "" || name == "auto" {
		return all[0], nil
	}
	var names []string
	for _, k := range all {
		if k.Name() == name {
			return k, nil
		}
		names = append(names, k.Name())
	}
	return k, fmt.Errorf("kernel %q is not available here; there are auto and %v", name, names)
}
