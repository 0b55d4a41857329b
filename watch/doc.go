// Package watch shows how a run goes while it works: a page, JSON, events and metrics, over HTTP.
//
// A [Server] serves them for anything that is a [Run], which the scheduler of a coordinator is; so the page of
// `ndls run` and that of a cluster are the same. A [State] has all that is shown. The page is made from it on the
// host, and sent again whenever it changes, as a server-sent event (HTML Living Standard, section 9.2): a browser
// without scripts loads it anew every five seconds.
//
// Metrics have the names that Prometheus recommends, and are written by its client library.
//
// Costs: one goroutine looks at the run once a second while somebody listens, whoever and how many that are.
package watch
