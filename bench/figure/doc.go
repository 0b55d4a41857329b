// Package figure draws the figures of the paper from numbers: how many hops nodes take, by share
// and by degree, and a small graph with the hops of its nodes.
//
// # Model
//
// A [Picture] is a plot with a size, which [Picture.Write] writes as PNG or SVG. Axes and legends
// say what is counted, and in which unit. Colours can be told apart by people who do not see red
// and green as different.
//
// # Memory
//
// The numbers of a histogram, and 20 MiB for the pixels of a PNG.
//
// # Determinism
//
// The same numbers give the same bytes on one platform. [Layout] places nodes by forces, from a
// circle on, without random numbers.
package figure
