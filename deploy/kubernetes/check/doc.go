// Package check holds the manifests of deploy/kubernetes against the types of the
// Kubernetes API and against the program, without a cluster. It has only tests,
// and a module of its own so that ndls does not depend on Kubernetes.
//
// # Model
//
// Each folder with a kustomization is built as kubectl would build it, and releases of the chart in
// deploy/helm as helm would. Every object that
// comes out is decoded strictly; names, ports, sizes and files that refer to each
// other must agree. Then every pod is run as its container would be: the
// static binary in an empty root that is read-only, as the same user, with the
// volumes, environment, arguments, host name and peers' names of the manifest, each pod at
// its own loopback address. A worker and the coordinator are stopped on the way
// and replaced as the Job controller would replace them.
//
// # Not supported
//
// What an API server checks beyond names and types of fields, scheduling, limits
// of memory and CPU, and the network between nodes.
package check
