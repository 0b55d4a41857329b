// Package pass measures what a hop consists of: the loops over edges in memory
// ([Kernels]), and passes whose edges are in memory or on disk ([Streams]).
package pass
