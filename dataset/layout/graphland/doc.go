// Package graphland reads a data set of GraphLand (Bazhenov et al., NeurIPS 2025) as tables: features.csv, targets.csv, edgelist.csv and
// split_masks_RL.csv, of RH or TH where the URI says so, as info.yaml describes them.
//
// # Memory
//
// The names of columns, and what [ndls/dataset/table] takes.
//
// # Not supported
//
// The setting THI, in which validation and test nodes come later.
package graphland
