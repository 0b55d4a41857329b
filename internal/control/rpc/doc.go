// Package rpc carries control.Service over gRPC: what a worker in another
// process asks of its coordinator has the results and the errors that it would
// have in the same process, as long as the coordinator is back within a bound.
//
// # Model
//
// [Serve] puts a service on a listener, [Dial] gives a [Client], which is a
// control.Service itself. Both need a [Security]: a job's own
// certificates, or a job token.
//
// Errors keep their meaning. control.ErrLeaseLost, ErrEnded and ErrRefused, and
// the context errors, are found by errors.Is on the client's side; another error
// arrives with its text, and the call may be repeated. A client without the right
// token or certificate gets ErrRefused.
//
// A call that fails because of the connection is made again, with growing pauses,
// until the client's patience ends; each time it looks for a connection, the
// client asks anew where the coordinator is. As long as no call of a client has
// ever succeeded, a wrong token or certificate ends a call at once; later it is
// taken for a sign that a stranger has got the address of a coordinator that is
// gone, and patience holds. A client that has joined a run names it with every
// call, and the coordinator of another run does not serve it.
//
// So a call may reach the service more than once. What that asks of a service:
//
//   - Commit under a live lease succeeds where the files to list are listed just
//     so and those to unlist are not listed. Copies that reach one and the same
//     server are held back here, however late they come; what remains is the
//     commit that is sent again because the coordinator was restarted.
//   - Finish succeeds again for the fencing number with which its task was
//     finished before.
//   - Renew and Join may be repeated at any time.
//   - A lease that Next gives to a worker that has gone away meanwhile is finished
//     here as control.Drained; one that is lost on the way runs out.
//
// Commit and Finish go on in the server when their caller goes away, so that a
// broken connection does not leave half of a change.
//
// # Format
//
// Each call is a gRPC stream, /ndls.Control/CALL, with the JSON of its argument in pieces, and back
// that of its answer: {"Result": …} or {"Failed": {"Text", "Kinds"}}, where Kinds are the names by
// which package control knows errors. What gRPC or the server itself refuses has a status:
// INVALID_ARGUMENT for a message that makes no sense; ABORTED where the caller belongs to another
// run, or too much arrives at the same time; UNAVAILABLE while the coordinator stops. Plans,
// reports and the journal have the same JSON. A byte of a text that is not UTF-8 arrives as U+FFFD.
//
// A folder of keys holds ca.pem, {coordinator,worker}.{pem,key} and gossip.key. The
// key of the certificate authority is not stored, so nobody can add a certificate. A
// certificate names its role as a host, coordinator.ndls or worker.ndls, and the
// other side checks that name instead of an address: addresses change. The
// coordinator's is for servers only; a worker's is for clients, and for the
// server from which other workers fetch rows. TLS is 1.3.
//
// A token is 64 hexadecimal digits, and is never sent. The key of a certificate authority
// comes from it (HKDF, Ed25519): whoever has the token issues a certificate to himself, for
// both roles, and takes that of the other side by the same authority. So a false coordinator
// learns nothing of it, and connections are encrypted in either case.
//
// # Memory
//
// Arguments and answers travel in pieces of 256 KiB and are collected on arrival: a call takes
// what its argument and its result take, and their JSON. Arguments of 256 MiB in all arrive at a
// server at a time. A server remembers 100 bytes for each commit of a lease that has not ended.
//
// # Not supported
//
// Any service but one run's: a server has one service, and a client one
// coordinator. Changing keys or token while a run goes on.
package rpc
