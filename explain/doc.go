// Package explain says why a node of a run was smoothed as it was.
//
// # Model
//
// Of a node i it gives the degree, the component, K, how K of its neighbours is spread, its
// distance from the stationary state at each hop, and what the classifier says of it before and
// after label smoothing.
//
// # Algorithm
//
// A run keeps K and not the distances. They are computed anew for the one node, in float64. The
// influence row of the node is u_k = e_iᵀ Â^k with Â = D̃^(r−1) Ã D̃^(−r) (definition 3.1 of the
// paper). With v_k = u_k D̃^(r−1) one hop is
//
//	a = v_k Ã,    u_(k+1) = a D̃^(−r),    v_(k+1) = a D̃⁻¹
//
// and the stationary row is Ĩ_ij = d̃_i^r d̃_j^(1−r) / vol, over the component of i or over the
// whole graph (equation 2), so that
//
//	‖u_k − Ĩ_i‖₂² = Σ_j d̃_j^(−2r) (a_j − d̃_i^r d̃_j / vol)².
//
// Where the run has found K from features, the distance is ‖(u_k − Ĩ_i) P‖₂ with the features P,
// whose rows are divided by their L1 norms. Tiles of features are then read once for each hop.
// Edges with directions have no stationary state, and no distances.
//
// # Memory
//
// 16·n bytes for two rows of n nodes, 5·n for degrees and the component, and 8 for each neighbour of the
// node; where distances are of features, 8·n more. Edges are read from the hop streams, which a run always
// has. They take what the streams take on disk, where the budget has room for them; elsewhere they are read again for each hop.
//
// # Determinism
//
// Sums run in the order of the edges in the hop streams, then of nodes: the result depends on the run
// alone.
package explain
