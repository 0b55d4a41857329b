// Package graphbolt reads the OnDiskDataset of DGL 2 (GraphBolt): metadata.yaml and files of
// edges, of features, and of the nodes of a task with their labels.
//
// # Memory
//
// metadata.yaml is held, at most 8 MiB. Files are streamed.
//
// # Not supported
//
// Several kinds of nodes or edges, tasks on links, and folders that GraphBolt has preprocessed.
package graphbolt
