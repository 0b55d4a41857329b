// Package npz reads a graph from one NumPy archive; dataset/formats/npz.md describes
// the layouts for users.
package npz
