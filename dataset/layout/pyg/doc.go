// Package pyg reads a graph of PyTorch Geometric from a file that torch.save has written: a
// Data object, a dict of its tensors, or the tuple (data, slices) in which InMemoryDataset
// stores its processed form. It also reads a graph that torch_geometric.distributed has
// partitioned, from all its parts as one graph.
//
// # Memory
//
// Tensors are streamed. The files of all parts of a partitioned graph are open at a time.
//
// # Not supported
//
// HeteroData, several graphs in one file, and adjacency as a SparseTensor.
package pyg
